//! The picture, read by an XML parser that is not ours: well-formed, the right sizes, and
//! nothing of a hostile name left but its text.

use roxmltree::{Document, Node, ParsingOptions};
use teeperf_profile::model::{Profile, Tree};
use teeperf_view::svg::{self, Growth, Options};

use crate::support::{function, kitchen, node, thread};

const SVG: &str = "http://www.w3.org/2000/svg";

fn draw(profile: &Profile, options: &Options) -> String {
    let tree = &profile.threads[0].tree;
    draw_tree(tree, profile, options)
}

fn draw_tree(tree: &Tree, profile: &Profile, options: &Options) -> String {
    let mut out = Vec::new();
    svg::write(tree, &profile.functions, &profile.info, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn parse(text: &str) -> Document<'_> {
    Document::parse_with_options(
        text,
        ParsingOptions { nodes_limit: 1_000_000, ..Default::default() },
    )
    .expect("well-formed XML")
}

/// A frame: lines of its tooltip, x, y, width, the text in it.
#[derive(Debug, PartialEq)]
struct Seen {
    name: String,
    details: String,
    x: f64,
    y: f64,
    width: f64,
    shown: String,
}

fn frames(document: &Document<'_>) -> Vec<Seen> {
    let child = |of: Node<'_, '_>, name: &str| {
        of.children().find(|child| child.has_tag_name((SVG, name))).map(|child| child.id()).unwrap()
    };
    let group = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
    let seen = |g: Node<'_, '_>| {
        let title = document.get_node(child(g, "title")).unwrap().text().unwrap();
        let rect = document.get_node(child(g, "rect")).unwrap();
        let text = document.get_node(child(g, "text")).unwrap();
        let number = |name| rect.attribute(name).unwrap().parse().unwrap();
        let (name, details) = title.split_once('\n').unwrap();
        Seen {
            name: name.into(),
            details: details.into(),
            x: number("x"),
            y: number("y"),
            width: number("width"),
            shown: text.text().unwrap_or_default().into(),
        }
    };
    group.children().filter(|child| child.is_element()).map(seen).collect()
}

#[test]
fn frames_are_as_wide_as_their_time() {
    // A pixel is a millisecond.
    let options = Options { width: 1020, growth: Growth::Down, ..Options::default() };
    let text = draw(&kitchen(), &options);
    let document = parse(&text);
    let places: Vec<(String, f64, f64, f64)> = frames(&document)
        .into_iter()
        .map(|frame| (frame.name, frame.x, frame.y, frame.width))
        .collect();
    let at = |name: &str, x, row: f64, width| (name.to_owned(), x, 64.0 + 17.0 * row, width);
    assert_eq!(
        places,
        [
            at("all", 10.0, 0.0, 1000.0),
            at("main", 10.0, 1.0, 1000.0),
            at("parse", 10.0, 2.0, 600.0),
            at("read", 610.0, 2.0, 300.0),
            at("parse", 10.0, 3.0, 300.0),
            at("read", 10.0, 4.0, 200.0),
        ]
    );
}

#[test]
fn flames_grow_upwards() {
    let text = draw(&kitchen(), &Options::default());
    let document = parse(&text);
    let frames = frames(&document);
    let height: f64 = document.root_element().attribute("height").unwrap().parse().unwrap();
    assert!(frames[0].y > frames[1].y && frames[1].y > frames[5].y);
    assert!(frames.iter().all(|frame| frame.y >= 64.0 && frame.y + 17.0 <= height));
}

#[test]
fn tooltips_say_all_figures() {
    let text = draw(&kitchen(), &Options::default());
    let document = parse(&text);
    let frames = frames(&document);
    assert_eq!(frames[2].details, "600.0 ms (60.0 %), self 300.0 ms (30.0 %), 4 calls, kitchen");
    assert_eq!(frames[2].shown, "parse");
}

#[test]
fn title_command_and_total_stand_above() {
    let options =
        Options { title: "Soup & more".into(), note: "bottom-up".into(), ..Options::default() };
    let text = draw(&kitchen(), &options);
    let document = parse(&text);
    let by_id = |id| {
        document
            .descendants()
            .find(|node| node.attribute("id") == Some(id))
            .unwrap()
            .text()
            .unwrap()
    };
    assert_eq!(by_id("title"), "Soup & more");
    assert_eq!(by_id("subtitle"), "./kitchen --soup · 1.000 s in recorded functions · bottom-up");

    // A title that is the command is not said twice.
    let options = Options { title: "./kitchen --soup".into(), ..Options::default() };
    let text = draw(&kitchen(), &options);
    assert!(text.contains(">1.000 s in recorded functions</text>"));
}

#[test]
fn colours_come_from_names_alone() {
    let colours = |profile: &Profile| -> Vec<String> {
        let text = draw(profile, &Options::default());
        let document = parse(&text);
        let rects = document
            .descendants()
            .filter(|node| node.has_tag_name((SVG, "rect")) && node.attribute("id").is_none());
        rects.map(|rect| rect.attribute("fill").unwrap().to_owned()).collect()
    };
    let once = colours(&kitchen());
    let mut other = kitchen();
    other.threads[0].tree.nodes[2].calls = 77;
    assert_eq!(colours(&other), once);
    // parse and read, of another module, differ; both reads are alike.
    assert_ne!(once[2], once[3]);
    assert_eq!(once[3], once[5]);
}

#[test]
fn hostile_names_are_text() {
    let mut profile = kitchen();
    let hostile = "</title></text><script>alert(1)</script>]]>&amp;\"'\u{0}\u{1b}\u{ffff}\u{202e}";
    for function in &mut profile.functions {
        function.name = hostile.into();
        function.module = hostile.into();
    }
    profile.info.command = vec![hostile.into()];
    let options = Options { title: hostile.into(), note: hostile.into(), ..Options::default() };
    let text = draw(&profile, &options);
    let document = parse(&text);
    let scripts = document.descendants().filter(|node| node.has_tag_name((SVG, "script"))).count();
    assert_eq!(scripts, 1);
    let frames = frames(&document);
    assert!(frames[1].name.starts_with("</title></text><script>alert(1)</script>]]>&amp;\"'\\x00"));
    let address = text.split('"').find(|part| part.starts_with("http") && *part != SVG);
    assert_eq!(address, None);
}

#[test]
fn what_is_thinner_than_a_tenth_of_a_pixel_is_one() {
    // 10,000 functions of 1 µs beside one of 990 ms: a pixel is a millisecond.
    let mut nodes = vec![node(0, 0, 0, 0.0, 1000.0), node(0, 0, 1, 990.0, 990.0)];
    let functions: Vec<_> = (0..=10_000).map(|i| function(&format!("f{i}"), "m")).collect();
    nodes.extend((1..=10_000).map(|i| node(0, i, 1, 0.001, 0.001)));
    let profile = Profile { functions, threads: vec![thread(1, "t", nodes)], ..Profile::default() };
    let text = draw(&profile, &Options { width: 1020, ..Options::default() });
    let document = parse(&text);
    let frames = frames(&document);
    assert_eq!(frames.len(), 3);
    assert_eq!(frames[2].name, "[10,000 call paths too thin to draw]");
    assert_eq!((frames[2].x, frames[2].width), (1000.0, 10.0));
}

#[test]
fn text_is_cut_to_its_frame() {
    let mut profile = kitchen();
    profile.functions[1].name =
        "ns::Parser<int>::parse_everything_there_is(int, char const*)".into();
    let text = draw(&profile, &Options { width: 320, ..Options::default() });
    let document = parse(&text);
    for frame in frames(&document) {
        assert!(frame.shown.chars().count() as f64 * 7.25 <= frame.width, "{frame:?}");
    }
}

#[test]
fn nothing_and_deep_stacks_are_drawn() {
    let empty = draw_tree(&Tree::default(), &Profile::default(), &Options::default());
    assert!(frames(&parse(&empty)).is_empty());
    let nodes = (0..2001u32).map(|at| node(at.saturating_sub(1), 0, 1, 0.0, 1.0)).collect();
    let profile = Profile {
        functions: vec![function("descend", "deep")],
        threads: vec![thread(1, "deep", nodes)],
        ..Profile::default()
    };
    let text = draw(&profile, &Options::default());
    assert_eq!(frames(&parse(&text)).len(), 2001);
}
