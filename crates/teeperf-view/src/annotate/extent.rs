//! From which line to which a function's source goes, as its text tells: brackets are counted but for those in comments,
//! strings and branches of the preprocessor that are not the first; and debug information, where brackets say nothing.

/// Most lines of what stands in front of a function's bracket.
const MOST_HEAD: usize = 12;

/// Where what is told of a function begins: debug information may name the line of its bracket, or that on which its
/// parameters end.
pub(super) fn begin_of(lines: &[&str], line: usize) -> usize {
    let closed = |text: &str| text.matches(')').count() as i64 - text.matches('(').count() as i64;
    let own = lines[line - 1].trim();
    let mut depth = closed(own.split('{').next().unwrap_or_default());
    if own != "{" && depth <= 0 {
        return line;
    }
    let first = line.saturating_sub(MOST_HEAD).max(1);
    // Up to the line that the parameters begin on, which is none of an initialiser's.
    let mut begin = None;
    for at in (first..line).rev() {
        let text = lines[at - 1].trim();
        // Within brackets lines may end in any way.
        if depth <= 0 && is_other(text) {
            break;
        }
        depth += closed(text);
        if depth <= 0 && text.contains('(') && !text.starts_with([':', ',']) && !is_macro(text) {
            begin = Some(at);
            break;
        }
    }
    let Some(mut begin) = begin else { return line };
    // What it gives back may stand above its name.
    while begin > first {
        let text = lines[begin - 2].trim();
        if is_other(text) || text.contains(['(', ')']) || is_macro(text) {
            break;
        }
        begin -= 1;
    }
    begin
}

/// Whether this is no part of a function's head.
fn is_other(text: &str) -> bool {
    text.is_empty()
        || text.ends_with([';', '}', '{', '/'])
        || text.starts_with(['#', '}', '/', '*'])
}

/// A word of capitals alone, with something in brackets or without.
fn is_macro(text: &str) -> bool {
    let word = text.split('(').next().unwrap_or_default().trim_end();
    let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    !word.is_empty() && word.chars().all(is_capital) && (word == text || text.ends_with(')'))
}

/// The last line of the function defined at `line`, from 1. `highest` is that which debug information has of its code in this
/// file, and `next` the first behind `line` at which it has another function.
pub(super) fn end_of(
    lines: &[&str],
    line: usize,
    highest: Option<usize>,
    next: Option<usize>,
) -> usize {
    let most = lines.len();
    let highest = highest.filter(|&at| at >= line && at <= most);
    let is_before_next = |at: &usize| next.is_none_or(|next| *at < next);
    match (closing(lines, line), highest.filter(is_before_next)) {
        // What macros have in them no bracket shows.
        (Some(end), Some(highest)) => end.max(highest),
        (Some(end), None) => end,
        (None, Some(highest)) => {
            // Code may end before the bracket, where nothing comes back.
            let until = next.map_or(most, |next| next - 1).min(highest + 3).min(most);
            let is_end = |at: &usize| lines[at - 1].trim_start().starts_with('}');
            (highest..=until).find(is_end).unwrap_or(highest)
        }
        (None, None) => {
            let depth = |text: &str| text.len() - text.trim_start().len();
            let own = depth(lines[line - 1]);
            let until = next.map_or(most, |next| next - 1).min(most);
            let is_end = |at: &usize| {
                lines[at - 1].trim_start().starts_with('}') && depth(lines[at - 1]) <= own
            };
            (line..=until).find(is_end).unwrap_or(line)
        }
    }
}

/// Within what a character stands.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Code,
    Comment,
    Text(char),
    /// Up to a quotation mark and so many hashes.
    Raw(usize),
}

/// The line of the bracket that closes the first one from `line` on; nothing where there is none, or a declaration ends
/// before.
fn closing(lines: &[&str], line: usize) -> Option<usize> {
    let (mut depth, mut round) = (0usize, 0usize);
    let mut within = Within::Code;
    // Of each open #if whether its first branch is over.
    let mut branches: Vec<bool> = Vec::new();
    for (at, text) in lines.iter().enumerate().skip(line - 1) {
        let directive = text.trim_start().strip_prefix('#').map(str::trim_start);
        if let Some(directive) = directive.filter(|_| within == Within::Code) {
            match directive {
                _ if directive.starts_with("if") => branches.push(false),
                _ if directive.starts_with("el") => {
                    branches.last_mut().into_iter().for_each(|over| *over = true);
                }
                _ if directive.starts_with("endif") => _ = branches.pop(),
                // Others, and Rust's attributes.
                _ => {}
            }
            continue;
        }
        if branches.contains(&true) {
            continue;
        }
        let bytes: Vec<char> = text.chars().collect();
        let mut i = 0;
        while i < bytes.len() {
            let (c, next) = (bytes[i], bytes.get(i + 1).copied().unwrap_or('\n'));
            i += 1;
            match within {
                Within::Comment if c == '*' && next == '/' => {
                    within = Within::Code;
                    i += 1;
                }
                Within::Text(_) if c == '\\' => i += 1,
                Within::Text(mark) if c == mark => within = Within::Code,
                Within::Raw(hashes) if c == '"' => {
                    let found = bytes[i..].iter().take_while(|&&c| c == '#').count();
                    if found >= hashes {
                        within = Within::Code;
                        i += hashes;
                    }
                }
                Within::Comment | Within::Text(_) | Within::Raw(_) => {}
                Within::Code => match c {
                    '/' if next == '/' => break,
                    '/' if next == '*' => {
                        within = Within::Comment;
                        i += 1;
                    }
                    '"' => {
                        let hashes = bytes[..i - 1].iter().rev().take_while(|&&c| c == '#').count();
                        let before = bytes[..i - 1 - hashes].last();
                        within = match before {
                            Some('r') => Within::Raw(hashes),
                            _ => Within::Text('"'),
                        };
                    }
                    // A character, and no lifetime of Rust.
                    '\'' if next == '\\' || bytes.get(i + 1) == Some(&'\'') => {
                        within = Within::Text('\'');
                    }
                    '(' => round += 1,
                    ')' => round = round.saturating_sub(1),
                    ';' if depth == 0 && round == 0 => return None,
                    '{' if round == 0 || depth > 0 => depth += 1,
                    '}' if depth > 0 => {
                        depth -= 1;
                        let rest: String = bytes[i..].iter().collect();
                        let behind = std::iter::once(&*rest).chain(lines[at + 1..].iter().copied());
                        let behind = behind.map(str::trim_start).find(|text| !text.is_empty());
                        // What a constructor's parts begin with is no body.
                        if depth == 0 && !behind.is_some_and(|text| text.starts_with([',', '{'])) {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                },
            }
        }
        // No text goes on in the next line but what is written so.
        let goes_on = text.ends_with('\\') || matches!(within, Within::Text('"'));
        if matches!(within, Within::Text(_)) && !goes_on {
            within = Within::Code;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str, line: usize) -> usize {
        end_of(&text.lines().collect::<Vec<_>>(), line, None, None)
    }

    #[test]
    fn brackets_are_counted_where_they_are_code() {
        for (text, expected) in [
            ("int f(void) { return 0; }\nint g;", 1),
            ("int f(void)\n{\n  g('}', \"}\", '\\''); // }\n  /* }\n } */\n}\n}", 6),
            // A bracket in the definition's column that closes something else.
            ("int f(int a)\n{\nswitch (a) {\ncase 1: break;\n}\nreturn 1;\n}\n", 7),
            (
                "int f(void)\n{\n#ifdef A\n  if (a) {\n#else\n  if (b) {\n#endif\n    g();\n  }\n}\n",
                10,
            ),
            ("int f(int a = g({}),\n  int b)\n{\n}\n", 4),
            ("A::A(int x)\n  : b(x), c{x}\n{\n}\n", 4),
            ("fn f<'a>(x: &'a str) -> char {\n  let c = '{';\n  r#\"}\"#;\n  c\n}\n", 5),
            ("void f()\n{\n  auto g = [] {\n  };\n}\n", 5),
        ] {
            assert_eq!(end(text, 1), expected, "{text}");
        }
    }

    #[test]
    fn where_brackets_say_nothing_debug_information_does() {
        let text = "int f(void)\nBEGIN\n  a();\n  b();\nEND\nint g(void)\n{\n}\n";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(end_of(&lines, 1, Some(4), Some(6)), 4);
        assert_eq!(end_of(&lines, 1, None, Some(6)), 1);
        let text = "F(x) {\n  g();\n}\n  h();\n}\n";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(end_of(&lines, 1, Some(5), None), 5);
        assert_eq!(end_of(&lines, 1, Some(5), Some(4)), 3);
        // What no code is behind.
        assert_eq!(end_of(&["int f;", "a", "}"], 1, None, None), 3);
    }

    #[test]
    fn a_head_begins_where_its_name_is() {
        for (text, line, expected) in [
            ("int f(int a)\n{\n}", 2, 1),
            ("MACRO\nint f(int a)\n{\n}", 3, 2),
            ("MACRO(x)\nstatic int\nf (int a,\n   int b)\n{\n}", 5, 2),
            ("int f(int a)\nMACRO\n{\n}", 3, 1),
            ("A::A(int x)\n  : b(x)\n  , c(x)\n{\n}", 4, 1),
            ("int g;\n{\n}", 2, 2),
            ("int f(int a) {\n}", 1, 1),
            ("int g;\nstatic int f(\n  int a,  /* one */\n  int b   // two\n){\n}", 5, 2),
            ("A A::f(int a,\n    int b) {\n}", 2, 1),
        ] {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(begin_of(&lines, line), expected, "{text}");
        }
    }
}
