//! The rules of the gateway and of the config answer, one by one.
