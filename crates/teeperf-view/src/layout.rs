//! Where the frames of a tree stand in a flame graph: start and width in nanoseconds,
//! depth in rows. Wide frames first among siblings; what is too thin to be seen is drawn
//! as one. Knows nothing of pixels or colours.

use teeperf_profile::model::{Function, Tree};

/// One rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    /// Nanoseconds from the left.
    pub(crate) start: f64,
    /// Nanoseconds wide.
    pub(crate) width: f64,
    /// Row, 0 for the root.
    pub(crate) depth: u32,
    /// Whose it is.
    pub(crate) content: Content,
}

/// What a rectangle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A node of the tree.
    Node(u32),
    /// Siblings too thin to be seen, with all that they called: how many call paths.
    Thin(u32),
}

/// The rectangles of `tree`, callers before what they called, none thinner than
/// `thinnest` nanoseconds but those that are many in one. Children never reach beyond
/// their caller, whatever the tree says.
pub(crate) fn frames(tree: &Tree, functions: &[Function], thinnest: f64) -> Vec<Frame> {
    if tree.nodes.is_empty() {
        return Vec::new();
    }
    let children = Children::of(tree, functions);
    let sizes = subtree_sizes(tree);
    let root = Frame { start: 0.0, width: tree.framed_ns(), depth: 0, content: Content::Node(0) };
    let mut out = vec![root];
    let mut next = 0;
    while next < out.len() {
        let caller = out[next];
        next += 1;
        let Content::Node(node) = caller.content else { continue };
        let mut start = caller.start;
        let mut thin = Frame { width: 0.0, depth: caller.depth + 1, ..caller };
        let mut thin_paths = 0u32;
        for &child in children.of_node(node) {
            let width = tree.nodes[child as usize].total.value;
            let width = width.min(caller.start + caller.width - start).max(0.0);
            if width >= thinnest && width > 0.0 {
                let content = Content::Node(child);
                out.push(Frame { start, width, depth: caller.depth + 1, content });
                start += width;
            } else {
                // Wide ones come first, so thin ones are neighbours.
                if thin_paths == 0 {
                    thin.start = start;
                }
                thin.width += width;
                start += width;
                thin_paths = thin_paths.saturating_add(sizes[child as usize]);
            }
        }
        if thin.width >= thinnest && thin.width > 0.0 {
            thin.content = Content::Thin(thin_paths);
            out.push(thin);
        }
    }
    out
}

/// Children of every node, widest first, then by name.
pub(crate) struct Children {
    first: Vec<u32>,
    list: Vec<u32>,
}

impl Children {
    pub(crate) fn of(tree: &Tree, functions: &[Function]) -> Self {
        let count = tree.nodes.len();
        let mut first = vec![0u32; count + 1];
        for node in tree.nodes.iter().skip(1) {
            first[(node.parent as usize + 1).min(count)] += 1;
        }
        for at in 0..count {
            first[at + 1] += first[at];
        }
        let mut free = first.clone();
        let mut list = vec![0u32; count.saturating_sub(1)];
        for (at, node) in tree.nodes.iter().enumerate().skip(1) {
            let slot = &mut free[(node.parent as usize).min(count - 1)];
            list[*slot as usize] = at as u32;
            *slot += 1;
        }
        let name = |at: u32| {
            let function = tree.nodes[at as usize].function;
            functions.get(function.0 as usize).map(|function| (&function.name, &function.module))
        };
        for at in 0..count {
            list[first[at] as usize..first[at + 1] as usize].sort_by(|&a, &b| {
                let total = |at: u32| tree.nodes[at as usize].total.value;
                total(b).total_cmp(&total(a)).then_with(|| name(a).cmp(&name(b)))
            });
        }
        Self { first, list }
    }

    pub(crate) fn of_node(&self, node: u32) -> &[u32] {
        &self.list[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

/// Nodes in each node's subtree, itself included.
pub(crate) fn subtree_sizes(tree: &Tree) -> Vec<u32> {
    let mut sizes = vec![1u32; tree.nodes.len()];
    for at in (1..tree.nodes.len()).rev() {
        let size = sizes[at];
        if let Some(caller) = sizes.get_mut(tree.nodes[at].parent as usize) {
            *caller = caller.saturating_add(size);
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use teeperf_profile::model::{FunctionId, Node, Time};

    /// Trees with totals as they may come: callees may claim more than their caller has.
    fn trees() -> impl Strategy<Value = Tree> {
        proptest::collection::vec((any::<u32>(), 0u32..5, -10.0..1000.0), 0..60).prop_map(|list| {
            let nodes = list.into_iter().enumerate().map(|(at, (parent, function, ns))| Node {
                parent: if at == 0 { 0 } else { parent % at as u32 },
                function: FunctionId(function),
                calls: 1,
                self_time: Time::default(),
                total: Time { value: ns, low: ns, high: ns },
                extremes: None,
                spent: Default::default(),
            });
            Tree { nodes: nodes.collect() }
        })
    }

    proptest! {
        #[test]
        fn frames_lie_within_their_callers_and_beside_each_other(tree in trees(), thinnest in 0.0..50.0) {
            let frames = frames(&tree, &[], thinnest);
            let place = |content| frames.iter().find(|frame| frame.content == content);
            for frame in frames.iter().skip(1) {
                prop_assert!(frame.width > 0.0 && frame.width >= thinnest);
                if let Content::Node(node) = frame.content {
                    let caller = place(Content::Node(tree.nodes[node as usize].parent)).unwrap();
                    prop_assert_eq!(frame.depth, caller.depth + 1);
                    prop_assert!(frame.start >= caller.start);
                    prop_assert!(frame.start + frame.width <= caller.start + caller.width + 1e-6);
                }
            }
            for (at, one) in frames.iter().enumerate() {
                for other in frames[at + 1..].iter().filter(|other| other.depth == one.depth) {
                    let apart = one.start + one.width <= other.start + 1e-6
                        || other.start + other.width <= one.start + 1e-6;
                    prop_assert!(apart, "{one:?} and {other:?}");
                }
            }
        }

        #[test]
        fn every_call_path_with_time_is_drawn(mut tree in trees()) {
            for node in &mut tree.nodes {
                node.total.value = 1.0 + node.total.value.abs();
            }
            for at in (1..tree.nodes.len()).rev() {
                let callee = tree.nodes[at];
                tree.nodes[callee.parent as usize].total.value += callee.total.value;
            }
            prop_assert_eq!(frames(&tree, &[], 0.0).len(), tree.nodes.len());
            // All as one when nothing is wide enough alone, but all together.
            let whole = tree.framed_ns();
            let first = tree.nodes.iter().skip(1).filter(|node| node.parent == 0).count();
            if first > 1 {
                let frames = frames(&tree, &[], whole * 0.999_999);
                let paths = tree.nodes.len() as u32 - 1;
                prop_assert_eq!(frames.len(), 2);
                prop_assert_eq!(frames[1].content, Content::Thin(paths));
            }
        }
    }
}
