//! Seeded random numbers whose sequence must stay the same for ever, because recordings and
//! reports name the seed: SplitMix64 (Steele, Lea, Flood 2014) and the polar Gaussian method.

/// A deterministic source of random numbers.
#[derive(Clone, Debug)]
pub struct Noise {
    state: u64,
    spare: Option<f64>,
}

impl Noise {
    /// A source for `seed`; `stream` separates the uses of one seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut noise = Noise { state: seed, spare: None };
        noise.state = noise.next_u64() ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93);
        noise
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0 (included) to 1 (excluded).
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Gaussian with mean 0 and standard deviation 1.
    pub fn gaussian(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                let scale = (-2.0 * s.ln() / s).sqrt();
                self.spare = Some(v * scale);
                return u * scale;
            }
        }
    }

    /// Nearly Gaussian with mean 0 and standard deviation 1, and ten times as fast: the sum of four
    /// uniform numbers. Never beyond 3.5.
    pub fn bell(&mut self) -> f64 {
        let bits = self.next_u64();
        let sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
        // Four times a uniform distribution over 65536 whole numbers: mean 2 x 65535, variance
        // (65536^2 - 1) / 3.
        (sum as f64 - 131_070.0) * SQRT_3 / 65_536.0
    }
}

const SQRT_3: f64 = 1.732_050_807_568_877_2;
