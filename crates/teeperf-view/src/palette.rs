//! Colours of frames: the hue says the module, shade and a slight turn of hue the
//! function. The same names have the same colours in every view, run and machine; only where two modules of
//! one profile would have the same hue, one takes the next.

use std::collections::BTreeMap;

/// Colour in hue (degrees), saturation and lightness (`0.0..=1.0`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hsl {
    /// Degrees.
    pub(crate) hue: f64,
    /// Saturation.
    pub(crate) saturation: f64,
    /// Lightness.
    pub(crate) lightness: f64,
}

/// Hues for libraries, chosen to stay apart from the program's own orange.
const LIBRARY_HUES: [u16; 7] = [212, 172, 130, 84, 250, 285, 332];
/// Hue of the program itself.
pub(crate) const PROGRAM_HUE: u16 = 28;
/// Stands for a module that is not known, and for what is no function: no hue at all.
pub(crate) const NO_HUE: u16 = 360;

/// Hues of a profile's modules.
pub(crate) struct Hues<'a>(BTreeMap<&'a str, u16>);

impl<'a> Hues<'a> {
    /// `program` is the file name of the command, whose own code is warm.
    pub(crate) fn of(modules: impl Iterator<Item = &'a str>, program: &str) -> Self {
        let mut hues: BTreeMap<&str, u16> = modules.map(|module| (module, NO_HUE)).collect();
        let mut taken = [0u32; LIBRARY_HUES.len()];
        for (&module, hue) in hues.iter_mut().filter(|(module, _)| !module.is_empty()) {
            if module == program {
                *hue = PROGRAM_HUE;
            } else {
                let own = hash(module) as usize % LIBRARY_HUES.len();
                // Its own, or the next of those that the fewest have.
                let from_own = (own..LIBRARY_HUES.len()).chain(0..own);
                let at = from_own.min_by_key(|&at| taken[at]).unwrap_or(own);
                taken[at] += 1;
                *hue = LIBRARY_HUES[at];
            }
        }
        Self(hues)
    }

    /// Of a module in degrees, [`NO_HUE`] when it is empty.
    pub(crate) fn hue(&self, module: &str) -> u16 {
        self.0.get(module).copied().unwrap_or(NO_HUE)
    }
}

/// Where in its module's range of shades a function stands, `0..=255`.
pub(crate) fn shade(name: &str) -> u8 {
    hash(name) as u8
}

/// Colour of a frame, light enough for dark text.
pub(crate) fn frame(hue: u16, shade: u8) -> Hsl {
    let turn = f64::from(shade & 15) / 15.0 - 0.5;
    let light = f64::from(shade >> 4) / 15.0 - 0.5;
    if hue == NO_HUE {
        return Hsl { hue: 0.0, saturation: 0.0, lightness: 0.78 + 0.08 * light };
    }
    // Orange spans red to yellow, as flame graphs do; the other hues are told apart by
    // little, so they turn less.
    let spread = if hue == PROGRAM_HUE { 36.0 } else { 16.0 };
    Hsl {
        hue: f64::from(hue) + spread * turn,
        saturation: if hue == PROGRAM_HUE { 0.86 } else { 0.58 },
        lightness: if hue == PROGRAM_HUE { 0.69 } else { 0.77 } + 0.10 * light,
    }
}

/// Colour of a frame that takes more than before (red) or less (blue): by the part of the largest difference that
/// there is, `-1.0..=1.0`. Small ones are seen too: the root of the part counts.
pub(crate) fn difference(part: f64) -> Hsl {
    if part == 0.0 {
        return Hsl { hue: 0.0, saturation: 0.0, lightness: 0.88 };
    }
    let strength = part.abs().min(1.0).sqrt();
    let hue = if part > 0.0 { 4.0 } else { 215.0 };
    Hsl { hue, saturation: 0.9, lightness: 0.92 - 0.22 * strength }
}

impl Hsl {
    /// As red, green and blue (CSS Color 4, section 7.1).
    pub(crate) fn to_rgb(self) -> [u8; 3] {
        let channel = |n: f64| {
            let k = (n + self.hue / 30.0).rem_euclid(12.0);
            let a = self.saturation * self.lightness.min(1.0 - self.lightness);
            let value = self.lightness - a * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
            (value * 255.0).round() as u8
        };
        [channel(0.0), channel(8.0), channel(4.0)]
    }

    /// As `#rrggbb`.
    pub(crate) fn to_hex(self) -> String {
        let [red, green, blue] = self.to_rgb();
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

/// FNV-1a, 32 bits, with its halves folded: neighbouring names fall far apart.
fn hash(text: &str) -> u32 {
    let hash = text
        .bytes()
        .fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_agrees_with_css() {
        let hsl = |hue, saturation, lightness| Hsl { hue, saturation, lightness }.to_hex();
        assert_eq!(hsl(0.0, 1.0, 0.5), "#ff0000");
        assert_eq!(hsl(120.0, 1.0, 0.25), "#008000");
        assert_eq!(hsl(-120.0, 1.0, 0.5), "#0000ff");
        assert_eq!(hsl(77.0, 0.0, 0.5), "#808080");
    }

    #[test]
    fn the_program_is_warm_and_libraries_are_not() {
        let hues = Hues::of(["lua", "", "libc.so.6"].into_iter(), "lua");
        assert_eq!(hues.hue("lua"), PROGRAM_HUE);
        assert_eq!(hues.hue(""), NO_HUE);
        assert!(LIBRARY_HUES.contains(&hues.hue("libc.so.6")));
        assert_eq!(Hues::of([""].into_iter(), "").hue(""), NO_HUE);
    }

    #[test]
    fn modules_share_a_hue_only_when_there_are_more_than_hues() {
        let names: Vec<String> = (0..20).map(|number| format!("lib{number}.so")).collect();
        for count in 1..=names.len() {
            let hues = Hues::of(names[..count].iter().map(String::as_str), "program");
            let mut found: Vec<u16> = names[..count].iter().map(|name| hues.hue(name)).collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), count.min(LIBRARY_HUES.len()), "{count} modules");
        }
        // Alone, each has its own.
        let alone = |name: &str| Hues::of([name].into_iter(), "program").hue(name);
        let both = Hues::of(["libc.so.6", "libm.so.6"].into_iter(), "program");
        assert_eq!(both.hue("libc.so.6"), alone("libc.so.6"));
    }

    #[test]
    fn every_frame_takes_dark_text_even_dimmed() {
        let modules = LIBRARY_HUES.into_iter().chain([PROGRAM_HUE, NO_HUE]);
        let frames = modules.flat_map(|hue| (0..=255).map(move |shade| frame(hue, shade)));
        let differences = (-10..=10).map(|part| difference(f64::from(part) / 10.0));
        for colour in frames.chain(differences) {
            {
                let colour = colour.to_hex();
                let channel = |at: usize| {
                    let c = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0
                        * 0.9;
                    if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
                };
                // WCAG 2.2, relative luminance and contrast against #1b1b1b.
                let luminance = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
                assert!((luminance + 0.05) / (0.0109 + 0.05) >= 4.5, "{colour}");
            }
        }
    }
}
