//! Flame graph as one SVG file (SVG 1.1 with CSS): a picture for any viewer, and in a
//! browser one that zooms on a click and searches. Loads nothing, and runs nothing but
//! the script of this crate.

use std::io::{self, Write};

use teeperf_profile::model::{Function, Info, Node, Tree};

use crate::layout::{self, Content, Frame};
use crate::palette::Hues;
use crate::{names, palette, units};

/// Which end of a call path stands at the edge that frames grow from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// Upwards from the bottom: flames.
    #[default]
    Up,
    /// Downwards from the top: icicles.
    Down,
}

/// How the picture is drawn.
#[derive(Clone, Debug)]
pub struct Options {
    /// Title.
    pub title: String,
    /// Pixels wide, at least 320.
    pub width: u32,
    /// Where frames grow to.
    pub growth: Growth,
    /// What the tree is, said under the title: empty for call paths.
    pub note: String,
    /// For each node colour and words of its own, in place of those of its module; none for what has no such.
    pub tones: Vec<Tone>,
}

/// How a node is shown that has a colour of its own.
#[derive(Clone, Debug)]
pub struct Tone {
    /// As `#rrggbb`.
    pub colour: String,
    /// What is said beside its times.
    pub said: String,
}

impl Default for Options {
    fn default() -> Self {
        let (title, note) = ("Flame graph".into(), String::new());
        Self { title, width: 1200, growth: Growth::Up, note, tones: Vec::new() }
    }
}

const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 64.0;
const FOOT: f64 = 30.0;
/// Width of a character of the frames' 12 pixel monospace font, a little generous.
const CHARACTER: f64 = 7.25;
/// Pixels below which a frame is not drawn alone.
const THINNEST: f64 = 0.1;

/// Draws a tree: that of one thread, of merged threads, or a bottom-up one.
pub fn write(
    tree: &Tree,
    functions: &[Function],
    info: &Info,
    options: &Options,
    out: &mut impl Write,
) -> io::Result<()> {
    let picture = Picture::new(tree, functions, info, options);
    picture.head(out)?;
    writeln!(out, "<g id=\"frames\">")?;
    for frame in &picture.frames {
        picture.frame(frame, out)?;
    }
    writeln!(out, "</g>")?;
    writeln!(out, "<script><![CDATA[{}]]></script>\n</svg>", include_str!("../page/svg.js"))
}

struct Picture<'a> {
    tree: &'a Tree,
    functions: &'a [Function],
    info: &'a Info,
    options: &'a Options,
    hues: Hues<'a>,
    frames: Vec<Frame>,
    total: f64,
    width: f64,
    height: f64,
    scale: f64,
}

impl<'a> Picture<'a> {
    fn new(
        tree: &'a Tree,
        functions: &'a [Function],
        info: &'a Info,
        options: &'a Options,
    ) -> Self {
        let width = f64::from(options.width.clamp(320, 100_000));
        let total = tree.framed_ns();
        let scale = if total > 0.0 { (width - 2.0 * MARGIN) / total } else { 0.0 };
        let thinnest = if scale > 0.0 { THINNEST / scale } else { 0.0 };
        let frames = layout::frames(tree, functions, thinnest);
        let rows = frames.iter().map(|frame| frame.depth + 1).max().unwrap_or(1);
        let height = HEAD + f64::from(rows) * ROW + FOOT;
        let modules = functions.iter().map(|function| function.module.as_str());
        let hues = Hues::of(modules, crate::program(info));
        Self { tree, functions, info, options, hues, frames, total, width, height, scale }
    }

    fn head(&self, out: &mut impl Write) -> io::Result<()> {
        let (width, height) = (self.width, self.height);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" data-grows=\"{}\">",
            if self.options.growth == Growth::Up { "up" } else { "down" },
        )?;
        writeln!(out, "<title>{}</title>", escape(&self.options.title))?;
        writeln!(out, "<style>{}</style>", include_str!("../page/svg.css"))?;
        writeln!(out, "<rect id=\"ground\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>")?;
        let room = ((width - 240.0) / 10.5).max(8.0) as usize;
        writeln!(
            out,
            "<text id=\"title\" x=\"{MARGIN}\" y=\"27\">{}</text>",
            escape(&names::fit(&self.options.title, room)),
        )?;
        let subtitle = self.subtitle();
        let room = ((width - 2.0 * MARGIN) / 6.6) as usize;
        writeln!(
            out,
            "<text id=\"subtitle\" x=\"{MARGIN}\" y=\"48\">{}</text>",
            escape(&names::fit(&subtitle, room)),
        )?;
        let right = width - MARGIN;
        writeln!(
            out,
            "<text id=\"reset\" class=\"button\" x=\"{}\" y=\"27\" tabindex=\"0\" role=\"button\">\
             reset zoom</text>",
            right - 70.0,
        )?;
        writeln!(
            out,
            "<text id=\"search\" class=\"button\" x=\"{right}\" y=\"27\" tabindex=\"0\" \
             role=\"button\">search</text>",
        )?;
        let foot = height - 11.0;
        writeln!(out, "<text id=\"details\" x=\"{MARGIN}\" y=\"{foot}\"> </text>")?;
        writeln!(out, "<text id=\"matched\" x=\"{right}\" y=\"{foot}\"> </text>")
    }

    fn subtitle(&self) -> String {
        let mut parts = Vec::new();
        let command = self.info.command.join(" ");
        if !command.is_empty() && command != self.options.title {
            parts.push(command);
        }
        parts.push(format!(
            "{} in recorded functions",
            units::time_inline(self.info.unit, self.total)
        ));
        if !self.options.note.is_empty() {
            parts.push(self.options.note.clone());
        }
        parts.join(" · ")
    }

    fn frame(&self, frame: &Frame, out: &mut impl Write) -> io::Result<()> {
        let x = MARGIN + frame.start * self.scale;
        let width =
            if frame.depth == 0 { self.width - 2.0 * MARGIN } else { frame.width * self.scale };
        let row = f64::from(frame.depth) * ROW;
        let y = match self.options.growth {
            Growth::Up => self.height - FOOT - ROW - row,
            Growth::Down => HEAD + row,
        };
        let (label, details, colour) = self.describe(frame);
        write!(
            out,
            "<g><title>{}\n{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" \
             height=\"{}\" rx=\"1\" fill=\"{colour}\"/>",
            escape(&label),
            escape(&details),
            ROW - 1.0,
        )?;
        let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
        let shown = if room < 3 { String::new() } else { names::label(&label, room) };
        writeln!(
            out,
            "<text x=\"{:.2}\" y=\"{}\">{}</text></g>",
            x + 3.0,
            y + ROW - 5.0,
            escape(&shown),
        )
    }

    /// Label, what the tooltip says under it, and colour.
    fn describe(&self, frame: &Frame) -> (String, String, String) {
        let share = units::percent_inline(units::share(frame.width, self.total));
        let time = units::time_inline(self.info.unit, frame.width);
        let node = match frame.content {
            Content::Node(0) => return ("all".into(), time, colour(palette::NO_HUE, 0)),
            Content::Node(node) => node as usize,
            Content::Thin(paths) => {
                let label =
                    format!("[{} too thin to draw]", units::counted(paths.into(), "call path"));
                return (label, format!("{time}, {share}"), colour(palette::NO_HUE, 255));
            }
        };
        let tone = self.options.tones.get(node);
        let node = &self.tree.nodes[node];
        let Some(function) = self.functions.get(node.function.0 as usize) else {
            return ("[unknown]".into(), format!("{time}, {share}"), colour(palette::NO_HUE, 0));
        };
        let hue = self.hues.hue(&function.module);
        let (colour, said) = match tone {
            Some(tone) => (tone.colour.clone(), format!(", {}", tone.said)),
            None => (colour(hue, palette::shade(&function.name)), String::new()),
        };
        (names::printable(&function.name), self.details(function, node) + &said, colour)
    }

    fn details(&self, function: &Function, node: &Node) -> String {
        let share = |part| units::percent_inline(units::share(part, self.total));
        let mut text = format!(
            "{} ({}), self {} ({}), {}",
            units::time_inline(self.info.unit, node.total.value),
            share(node.total.value),
            units::time_inline(self.info.unit, node.self_time.value),
            share(node.self_time.value),
            units::counted(node.calls, if self.info.is_sampled() { "sample" } else { "call" }),
        );
        if node.total.is_uncertain() {
            text.push_str(&format!(", between {}", units::interval(self.info.unit, &node.total)));
        }
        if !function.module.is_empty() {
            text.push_str(&format!(", {}", names::printable(&function.module)));
        }
        text
    }
}

fn colour(hue: u16, shade: u8) -> String {
    palette::frame(hue, shade).to_hex()
}

/// Text for element content and attributes (XML 1.0, sections 2.2 and 2.4); characters
/// that XML cannot carry become U+FFFD.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
