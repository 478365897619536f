"""Independent computation: levels, steps, floors and absence, by scipy.

    check.py DIR...

A DIR is a foreign session (events.jsonl, meta.json, speaker.wav: an electrical tap) or a recording
(records.jsonl, mic-001.wav), and beside it lies what earwitness said of it (run.json) and what is
true (expect.json; for a room with `snr13_db`). Samples and step times are read from the DIR, all
arithmetic is scipy's, and run.json is opened only to compare at the end. Exit 0: all agree.
"""

import json
import sys
from pathlib import Path

try:
    import numpy as np
    from scipy import io, optimize, signal
except ImportError as error:
    sys.exit(f"{error}: pip install -r tests/scipy/requirements.txt")

TONE_HZ = 1000.0
THIRD_OCTAVE = 10**0.05 - 10**-0.05
# Inside the edges that the envelope finds: the filter's and the codec's ramps are over by then.
EDGE_S = 0.12
# How long after a play step its sound may still go on.
PLAY_OUT_S = 0.3
TONES = ("tone-1", "tone-2", "tone-3", "tone-4")
PAIRS = (("tone-1", "tone-2"), ("tone-3", "tone-4"))
# What is sent, -12 dBFS, at volume 40 of a board whose gain is 40 log10(volume / 100) dB.
QUIETER_DBFS = -12.0 + 40 * np.log10(0.4)

# What counts as agreement, dB.
TAP_LEVEL = 0.02
TAP_STEP = 0.05
ROOM_EXTRA = 0.1
ROOM_FLOOR = 1.5
TWO_METHODS = 0.02


def db(power_ratio):
    return 10 * np.log10(power_ratio) if power_ratio > 0 else -np.inf


def dbfs(mean_square):
    """AES17: a full-scale sine is 0 dBFS."""
    return db(2 * mean_square)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


class Sound:
    """Samples, and when the first of them sounded."""

    def __init__(self, path, starts):
        self.rate, raw = io.wavfile.read(path)
        scale = 32768.0 if raw.dtype == np.int16 else 1.0
        self.x, self.starts = raw.astype(float) / scale, starts

    def between(self, since, until):
        index = lambda t: max(0, round((t - self.starts) * self.rate))
        return self.x[index(since) : index(until)]


def tap(folder):
    """The loudspeaker's electrical signal, and the phases called tone-N."""
    starts = json.loads((folder / "meta.json").read_text())["speaker_wav"]["starts_at_session_t"]
    marks = [(e["t"], e["phase"]) for e in lines(folder / "events.jsonl") if "phase" in e]
    ends = [t for t, _ in marks[1:]] + [marks[-1][0]]
    steps = {name: (t, end) for (t, name), end in zip(marks, ends) if name in TONES}
    return Sound(folder / "speaker.wav", starts), steps


def recording(folder):
    """The microphone, and the steps called tone-N; times are nanoseconds there."""
    starts, steps = None, {}
    for record in lines(folder / "records.jsonl"):
        sound = record.get("saw", {}).get("what", {})
        if isinstance(sound, dict) and sound.get("sound", {}).get("first") == 0:
            starts = record["saw"]["captured_at"] * 1e-9
        step = record.get("step", {})
        if step.get("path") in TONES:
            steps.setdefault(step["path"], {})[step["edge"]] = record["at"] * 1e-9
    times = {name: (edges["start"], edges["end"]) for name, edges in steps.items()}
    return Sound(folder / "mic-001.wav", starts), times


def find(sound, since, until):
    """The steady part of a 1 kHz tone: where a band-pass's envelope is above half its plateau."""
    x = sound.between(since, until + PLAY_OUT_S)
    band = signal.butter(2, [960, 1040], "bandpass", fs=sound.rate, output="sos")
    envelope = np.abs(signal.hilbert(signal.sosfiltfilt(band, x)))
    width = round(0.05 * sound.rate)
    envelope = np.convolve(envelope, np.ones(width) / width, "same")
    above = np.concatenate([[0], envelope > np.percentile(envelope, 90) / 2, [0]]).astype(int)
    first, last = np.flatnonzero(np.diff(above) == 1), np.flatnonzero(np.diff(above) == -1)
    longest = np.argmax(last - first)
    edge = round(EDGE_S * sound.rate)
    return x[first[longest] + edge : last[longest] - edge]


def fit(x, rate):
    """Level by curve_fit of a sine with free frequency, dBFS, and the frequency."""
    t = (np.arange(len(x)) - len(x) / 2) / rate
    sine = lambda t, a, b, c, hz: (
        a * np.cos(2 * np.pi * hz * t) + b * np.sin(2 * np.pi * hz * t) + c
    )
    turn = np.exp(-2j * np.pi * TONE_HZ * t) @ x * 2 / len(x)
    guess = [turn.real, -turn.imag, 0.0, TONE_HZ]
    (a, b, _, hz), _ = optimize.curve_fit(
        sine, t, x, guess, method="trf", x_scale=[0.01, 0.01, 0.01, 0.1], ftol=1e-12
    )
    return dbfs((a * a + b * b) / 2), hz


def density(x, rate):
    """One-sided noise density 0.06 to 0.3 octaves beside the tone, by Welch's median."""
    hz, psd = signal.welch(x, rate, nperseg=4096, average="median", detrend=False)
    octaves = np.abs(np.log2(np.maximum(hz, 1) / TONE_HZ))
    return np.mean(psd[(octaves >= 0.06) & (octaves <= 0.3)])


def lobe(x, rate, noise):
    """Level by the main lobe of a Blackman-Harris periodogram less the noise in it, dBFS."""
    hz, psd = signal.periodogram(x, rate, window="blackmanharris", detrend=False)
    inside = np.abs(hz - TONE_HZ) <= 4.5 * rate / len(x)
    return dbfs(np.sum(psd[inside] - noise) * rate / len(x))


def ceiling(x, rate, noise):
    """The highest level of 0.7 s of 1 kHz anywhere in `x`, plus two standard deviations, dBFS."""
    count = round(0.7 * rate)
    turned = x * np.exp(-2j * np.pi * TONE_HZ * np.arange(len(x)) / rate)
    sums = np.concatenate([[0], np.cumsum(turned)])
    strongest = np.max(np.abs(sums[count:] - sums[:-count])) * 2 / count / np.sqrt(2)
    return dbfs((strongest + 2 * np.sqrt(noise / (2 * 0.7))) ** 2)


def said(folder):
    """What earwitness said: the session, and its physical measurements by name."""
    (session,) = json.loads((folder / "run.json").read_text())["sessions"]
    (claim,) = session["claims"]
    (physical,) = [f for f in claim["findings"] if f["rung"] == "physical"]
    return session["outcome"], claim["discrepancy"], {
        m["name"]: m for m in physical["measurements"]
    }


class Table:
    def __init__(self):
        self.agreed, self.failed = 0, 0

    def row(self, case, what, scipy, other, limit):
        self.add(case, what, scipy, other, abs(scipy - other), limit)

    def at_most(self, case, what, scipy, most):
        self.add(case, what, scipy, most, scipy - most, 0.0)

    def same(self, case, what, found, wanted):
        self.add(case, what, found, wanted, 0.0 if found == wanted else np.inf, 0.0)

    def add(self, case, what, left, right, off, limit):
        good = bool(off <= limit)
        self.agreed, self.failed = self.agreed + good, self.failed + (not good)
        shown = [f"{v:12.4f}" if isinstance(v, float) else f"{v!s:>12}" for v in (left, right)]
        verdict = "ok" if good else "DISAGREE"
        print(f"{case:34} {what:26} {shown[0]} {shown[1]} {off:9.4f} {limit:7.4f} {verdict}")


def tones(table, case, folder, expect, sound, steps):
    """A session whose tones sound: levels, steps and, in a room, the floor."""
    snr13 = expect.get("snr13_db")
    levels, snrs, floors = {}, [], []
    for name, (since, until) in sorted(steps.items()):
        x = find(sound, since, until)
        noise = density(x, sound.rate)
        levels[name], _ = fit(x, sound.rate)
        by_lobe = lobe(x, sound.rate, noise)
        # A lobe holds the noise of nine bins; the fit only that of one.
        spread = 0.0 if snr13 is None else 3 * 8.686 * np.sqrt(9 * noise / (2 * len(x) / sound.rate * np.mean(x**2)))
        table.row(case, f"{name} fit, lobe", levels[name], by_lobe, TWO_METHODS + spread)
        floors.append(dbfs(noise * THIRD_OCTAVE * TONE_HZ))
        snrs.append(levels[name] - floors[-1])
    step = np.mean([levels[b] - levels[a] for a, b in PAIRS])
    outcome, discrepancy, ours = said(folder)
    table.same(case, "outcome", outcome, expect["outcome"])
    table.same(case, "discrepancy", discrepancy, expect["discrepancy"])
    our_step = ours["level_step"]
    for name, level in levels.items():
        our = ours[f"level {name}"]
        limit = TAP_LEVEL if snr13 is None else 2 * our["uncertainty"] + ROOM_EXTRA
        table.row(case, f"{name} level", level, our["value"], limit)
    limit = TAP_STEP if snr13 is None else our_step["uncertainty"] + ROOM_EXTRA
    table.row(case, "step", step, our_step["value"], limit)
    table.row(case, "step, true", step, expect["step_db"], limit)
    table.row(case, "earwitness step, true", our_step["value"], expect["step_db"], limit)
    if snr13 is not None:
        table.row(case, "snr13", min(snrs), ours["snr13"]["value"], ROOM_FLOOR)
        table.row(case, "snr13, true", min(snrs), snr13, ROOM_FLOOR)
        floor = QUIETER_DBFS - snr13
        table.row(case, "floor, true", float(np.median(floors)), floor, ROOM_FLOOR)


def silence(table, case, folder, expect, sound, steps):
    """A session whose tones are missing: how loud could one be, how loud had it to be."""
    expected = QUIETER_DBFS
    outcome, discrepancy, ours = said(folder)
    for name, (since, until) in sorted(steps.items()):
        x = sound.between(since, until + PLAY_OUT_S)
        noise = density(x, sound.rate)
        table.at_most(case, f"{name} ceiling", ceiling(x, sound.rate, noise), expected - 10)
        floor = dbfs(noise * THIRD_OCTAVE * TONE_HZ)
        table.at_most(case, f"{name} floor", floor, expected - 15)
    our = ours["tone_ceiling"]["value"]
    table.at_most(case, "earwitness ceiling", our, expected - 10)
    table.same(case, "outcome", outcome, expect["outcome"])
    table.same(case, "discrepancy", discrepancy, expect["discrepancy"])


def main(folders):
    table = Table()
    print(f"{'case':34} {'what':26} {'scipy':>12} {'other':>12} {'off by':>9} {'limit':>7}")
    for folder in map(Path, folders):
        expect = json.loads((folder / "expect.json").read_text())
        sound, steps = (recording if (folder / "records.jsonl").exists() else tap)(folder)
        assert sorted(steps) == sorted(TONES), f"{folder}: steps {sorted(steps)}"
        sounds = expect.get("step_db") is not None
        (tones if sounds else silence)(table, folder.name, folder, expect, sound, steps)
    print(f"{table.agreed} agree, {table.failed} disagree")
    return 1 if table.failed or not table.agreed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
