//! Rates and times as displayed text. Programs never parse it.

/// Formats a rate, such as `940.0 Mb/s` or `12.9 Gb/s`.
#[must_use]
pub fn rate(bytes_per_sec: f64) -> String {
    if !bytes_per_sec.is_finite() {
        return "any rate".into();
    }
    match bytes_per_sec * 8.0 {
        bits if bits >= 1e9 => format!("{:.1} Gb/s", bits * 1e-9),
        bits => format!("{:.1} Mb/s", bits * 1e-6),
    }
}

/// Formats a time of a path, such as `40 us` or `150.00 ms`.
#[must_use]
pub fn time(secs: f64) -> String {
    if secs < 1e-3 { format!("{:.0} us", secs * 1e6) } else { format!("{:.2} ms", secs * 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_depend_on_the_number() {
        let rates = [1e6, 124.9e6, 125e6, 1.6e9, f64::INFINITY].map(rate);
        assert_eq!(rates, ["8.0 Mb/s", "999.2 Mb/s", "1.0 Gb/s", "12.8 Gb/s", "any rate"]);
        assert_eq!([4e-5, 1e-3, 0.15].map(time), ["40 us", "1.00 ms", "150.00 ms"]);
    }
}
