//! Ways into and out of functions that are no call and no return: marks and jumps (`setjmp`, `longjmp`, `vfork`),
//! caught exceptions, other stacks, and what was done while nothing was summed.
//!
//! Frames that are closed here end now, and were left as the program meant to. They are closed one by one, so
//! that each node is as if its function had returned.

use super::Tree;
use crate::folding::Ways;
use crate::memory::Node;
use crate::positions::{self, Kind, Position};
use teeperf_wire::tree::{OVERFLOW, ROOT, node};

impl Tree {
    /// A mark is made here.
    pub fn mark(&self, key: u64) {
        positions::keep(self.memory, Kind::Mark, key, self.stack.get(), self.position());
    }

    /// The thread goes back to where a mark was made last, if that is known.
    pub fn jump(&self, key: u64) {
        let Some((kept, stack)) = positions::find(self.memory, Kind::Mark, key) else { return };
        let present = self.stack.get();
        if stack != present && positions::find(self.memory, Kind::Stack, stack).is_some() {
            self.switch(Some(present), stack);
        }
        self.close(self.frames_above(&kept));
    }

    /// The function at `address` catches an exception.
    pub fn catch(&self, address: u64) {
        let swallowed = self.swallowed();
        if swallowed > 0 && self.swallowed_frame(address).is_some() {
            // One of these frames, and not known which.
            return self.beside.set(self.memory.node(OVERFLOW));
        }
        if self.nearest(|there| there.wide(node::ADDRESS) == address).is_some() {
            self.close(swallowed as u64);
        }
        if let Some(meant) = self.nearest(|there| there.wide(node::ADDRESS) == address) {
            self.close_above(meant);
        }
    }

    /// The thread goes on on another stack; the one that it leaves runs again if it is named here.
    pub fn switch(&self, left: Option<u64>, entered: u64) {
        match left {
            Some(left) => {
                positions::keep(self.memory, Kind::Stack, left, 0, self.position());
            }
            None => self.close_all(),
        }
        let kept = positions::find(self.memory, Kind::Stack, entered);
        positions::forget(self.memory, Kind::Stack, entered);
        self.stack.set(entered);
        // Frames that find no room are from now on of several stacks.
        self.is_blind.set(true);
        let root = Position { top: self.memory.node(ROOT), swallowed: 0, depth: 0 };
        let Position { top, swallowed, depth } = kept.map_or(root, |(position, _)| position);
        if let Some(folding) = self.folding() {
            folding.depth.set(depth.min(folding.deepest.get()));
        }
        self.stand_at(top);
        self.beside.set(self.memory.node(OVERFLOW));
        self.set_swallowed(swallowed as usize);
    }

    /// The thread is on this stack from here on; one that it leaves keeps its frames.
    pub fn enter_stack(&self, stack: u64) {
        if stack != self.stack.get() {
            self.switch(Some(self.stack.get()), stack);
        }
    }

    /// A stack begins anew, and is empty.
    pub fn begin_stack(&self, stack: u64) {
        positions::forget(self.memory, Kind::Stack, stack);
        if self.stack.get() == stack {
            self.close_all();
        }
    }

    /// What is open is not known any more, on this stack nor on others: paths begin anew, and returns of what was open
    /// are of no call.
    pub fn forget_frames(&self) {
        positions::forget_all(self.memory);
        self.close_all();
    }

    /// While nothing was summed, so many frames were left, and then so many entered: these are unknown, and
    /// any return is taken for theirs. Nothing may come in between that uses the tree.
    pub fn miss(&self, left: u32, entered: u32) {
        self.close(left.into());
        if entered == 0 {
            return;
        }
        let current = self.current();
        let unseen = || {
            if self.swallowed() > 0 {
                return None;
            }
            if self.is_unseen(current) {
                return Some(current);
            }
            let index = self.memory.index(current);
            self.find(index, 0).or_else(|| self.make(index, 0, 0, self.paths))
        };
        let Some(unseen) = unseen() else {
            self.beside.set(self.memory.node(OVERFLOW));
            self.is_blind.set(true);
            return self.set_swallowed(self.swallowed().saturating_add(entered as usize));
        };
        unseen.put(node::OPEN, unseen.get(node::OPEN).saturating_add(entered));
        if let Some(folding) = self.folding() {
            folding.deeper(entered);
        }
        self.stand_at(unseen);
    }

    /// Whether a node stands for frames whose calls were not seen.
    pub(super) fn is_unseen(&self, there: Node) -> bool {
        there.wide(node::ADDRESS) == 0 && self.memory.index(there) > OVERFLOW
    }

    /// The nearest frame below the top, and with it, that fits, of those that found room.
    pub(super) fn nearest(&self, fits: impl Fn(Node) -> bool) -> Option<Node> {
        let mut there = self.current();
        for _ in 0..self.memory.nodes() {
            if self.memory.index(there) <= OVERFLOW {
                return None;
            }
            if fits(there) {
                return Some(there);
            }
            there = self.memory.node(there.get(node::PARENT));
        }
        None
    }

    /// Closes the frames above a node that lies on the path; says how many. All found room.
    pub(super) fn close_above(&self, meant: Node) -> u64 {
        let most = match self.folding() {
            Some(folding) => folding.depth.get(),
            None => self.memory.nodes(),
        };
        let mut closed = 0;
        while self.current() != meant && closed < u64::from(most) {
            self.close(1);
            closed += 1;
        }
        closed
    }

    /// Closes so many frames, or all there are.
    pub(super) fn close(&self, mut frames: u64) {
        let swallowed = self.swallowed();
        if swallowed > 0 {
            let closed = swallowed.min(usize::try_from(frames).unwrap_or(usize::MAX));
            frames -= closed as u64;
            self.beside.set(self.memory.node(OVERFLOW));
            self.set_swallowed(swallowed - closed);
        }
        let root = self.memory.node(ROOT);
        while frames > 0 && self.current() != root {
            let current = self.current();
            if self.is_unseen(current) {
                frames -= self.leave_unseen(current, frames).max(1);
            } else {
                frames -= 1;
                self.leave_one(current);
            }
        }
    }

    /// Leaves frames that a node stands for, up to so many; says how many.
    fn leave_unseen(&self, current: Node, frames: u64) -> u64 {
        let open = current.get(node::OPEN);
        let closed = frames.min(open.into());
        let left = open - closed as u32;
        current.put(node::OPEN, left);
        self.shallower(closed as u32);
        if left == 0 {
            self.stand_at(self.memory.node(current.get(node::PARENT)));
        }
        closed
    }

    /// Closes the frame on top, which found room and is known.
    fn leave_one(&self, current: Node) {
        let Some(folding) = self.folding() else { return self.leave(current) };
        self.shallower(1);
        match folding.ways.pop(self.memory, current) {
            Some(back) => self.stand_at(back),
            None => {
                // A signal handler before this makes no path with the function twice, nor one behind it.
                self.leave(current);
                Ways::close(current);
            }
        }
    }

    fn shallower(&self, frames: u32) {
        if let Some(folding) = self.folding() {
            folding.depth.set(folding.depth.get().saturating_sub(frames));
        }
    }

    /// Closes all frames of the stack, or forgets them where nothing counts them.
    fn close_all(&self) {
        if let Some(folding) = self.folding() {
            self.close(self.swallowed() as u64 + u64::from(folding.depth.get()));
        }
        self.set_swallowed(0);
        self.stand_at(self.memory.node(ROOT));
    }

    fn position(&self) -> Position {
        Position {
            top: self.current(),
            swallowed: u32::try_from(self.swallowed()).unwrap_or(u32::MAX),
            depth: self.folding().map_or(0, |folding| folding.depth.get()),
        }
    }

    /// How many frames are open above a position that was kept.
    fn frames_above(&self, kept: &Position) -> u64 {
        let here = self.position();
        if self.folding().is_some() {
            let frames =
                |position: &Position| u64::from(position.depth) + u64::from(position.swallowed);
            return frames(&here).saturating_sub(frames(kept));
        }
        // In most cases it lies on the path; else the depths of both tell.
        let (from_here, is_on_path) = self.frames_to(here.top, kept.top);
        let root = self.memory.node(ROOT);
        let from_kept = if is_on_path { 0 } else { self.frames_to(kept.top, root).0 };
        (from_here + u64::from(here.swallowed))
            .saturating_sub(from_kept + u64::from(kept.swallowed))
    }

    /// Frames from a node down to another, or to the root, and whether that came first.
    fn frames_to(&self, top: Node, down_to: Node) -> (u64, bool) {
        let mut there = top;
        let mut frames = 0;
        for _ in 0..self.memory.nodes() {
            if there == down_to {
                return (frames, true);
            }
            if self.memory.index(there) <= OVERFLOW {
                break;
            }
            frames += if self.is_unseen(there) { there.get(node::OPEN).into() } else { 1 };
            there = self.memory.node(there.get(node::PARENT));
        }
        (frames, false)
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::Tree;
    use crate::tree::tests::{STEPS, tree};
    use proptest::prelude::*;
    use std::collections::HashMap;
    use teeperf_wire::tree::{OVERFLOW, header, node};

    /// Addresses of the frames on the path, the uppermost last; where calls are folded, of those that it has.
    fn path(tree: &Tree) -> Vec<u64> {
        let mut there = tree.current();
        let mut path = Vec::new();
        while tree.memory.index(there) > OVERFLOW {
            let frames = if tree.is_unseen(there) { there.get(node::OPEN) } else { 1 };
            path.extend((0..frames).map(|_| there.wide(node::ADDRESS)));
            there = tree.memory.node(there.get(node::PARENT));
        }
        path.reverse();
        path
    }

    fn mended(tree: &Tree) -> u64 {
        tree.memory.header(header::MENDED).wide(0)
    }

    /// Frames by stack, marks by key; 0 is a frame that was not seen.
    #[derive(Default)]
    struct Slow {
        open: Vec<u64>,
        stack: u64,
        left: HashMap<u64, Vec<u64>>,
        marks: HashMap<u64, (u64, usize)>,
    }

    impl Slow {
        fn switch(&mut self, entered: u64) {
            self.left.insert(self.stack, std::mem::take(&mut self.open));
            self.open = self.left.remove(&entered).unwrap_or_default();
            self.stack = entered;
        }

        fn jump(&mut self, key: u64) {
            let Some(&(stack, depth)) = self.marks.get(&key) else { return };
            if stack != self.stack && self.left.contains_key(&stack) {
                self.switch(stack);
            }
            self.open.truncate(depth);
        }
    }

    proptest! {
        /// What docs/format.md says of ways out under Replay, with frames and not with nodes.
        #[test]
        fn ways_out_are_those_of_frames(steps in proptest::collection::vec((0u8..12, 1u64..5), 0..STEPS)) {
            let tree = tree(1 << 20, false);
            let mut slow = Slow::default();
            for (what, n) in steps {
                // A node of unseen frames has the number of all stacks' together, and a return takes any.
                let has_unseen = slow.open.contains(&0);
                match what {
                    7 | 10 if has_unseen => continue,
                    11 if !slow.left.is_empty() => continue,
                    0..5 => {
                        tree.call_anew(n, slow.open.len() / 2, 1);
                        slow.open.push(n);
                    }
                    5 | 6 => {
                        if let Some(address) = slow.open.pop() {
                            tree.ret(if address == 0 { n } else { address });
                        }
                    }
                    7 => {
                        tree.mark(n);
                        slow.marks.insert(n, (slow.stack, slow.open.len()));
                    }
                    8 => {
                        tree.jump(n);
                        slow.jump(n);
                    }
                    9 => {
                        tree.catch(n);
                        if let Some(at) = slow.open.iter().rposition(|&frame| frame == n) {
                            slow.open.truncate(at + 1);
                        }
                    }
                    10 if n == 4 => {
                        tree.begin_stack(2);
                        slow.left.remove(&2);
                        if slow.stack == 2 {
                            slow.open.clear();
                        }
                    }
                    10 => if n != slow.stack {
                        tree.switch(Some(slow.stack), n);
                        slow.switch(n);
                    },
                    _ => {
                        tree.miss(n as u32 - 1, 3);
                        slow.open.truncate((slow.open.len() + 1).saturating_sub(n as usize));
                        slow.open.extend([0; 3]);
                    }
                }
                prop_assert_eq!(path(&tree), &slow.open[..]);
            }
            prop_assert_eq!(mended(&tree), 0);
        }

        /// Where there is no room, and where calls are folded: all that was open is closed by a jump to the ground, and
        /// what comes then is where it belongs.
        #[test]
        fn a_jump_to_the_ground_leaves_nothing(calls in proptest::collection::vec((1u64..60, any::<bool>()), 0..STEPS), folds: bool) {
            let tree = tree(2112, folds);
            tree.mark(9);
            let mut open = Vec::new();
            for (address, calls) in calls {
                if calls {
                    tree.call_anew(address, open.len() / 2, 1);
                    open.push(address);
                } else if let Some(address) = open.pop() {
                    tree.ret(address);
                }
            }
            tree.jump(9);
            prop_assert_eq!(path(&tree), Vec::<u64>::new());
            prop_assert_eq!((tree.swallowed(), mended(&tree)), (0, 0));
        }
    }

    /// A tree with calls in a row, of functions 1 and so on: so many that found room, and two that did not.
    fn two_too_many() -> (Tree, u64) {
        let tree = tree(2112, false);
        let room = u64::from(tree.paths - tree.used.get());
        for address in 1..=room + 2 {
            tree.call_anew(address, 0, 1);
        }
        (tree, room)
    }

    /// Who goes on is not known where a function catches that found no room.
    #[test]
    fn time_after_a_catch_without_room_is_nobodys() {
        let (tree, room) = two_too_many();
        tree.catch(room + 1);
        tree.moved(9);
        assert_eq!(tree.memory.node(OVERFLOW).wide(node::SELF), 9);
    }

    /// Frames that found no room are left without a word: a return of one below them closes them all.
    #[test]
    fn frames_without_room_do_not_stay_for_ever() {
        let (tree, room) = two_too_many();
        assert_eq!(tree.swallowed(), 2);
        tree.ret(room + 1);
        assert_eq!((tree.swallowed(), mended(&tree)), (1, 0), "one of two, whichever");
        tree.ret(3);
        assert_eq!((tree.swallowed(), path(&tree)), (0, vec![1, 2]));
        assert_eq!(tree.take_mended(), 1 + room - 3);
        assert_eq!(mended(&tree), 0);
    }
}
