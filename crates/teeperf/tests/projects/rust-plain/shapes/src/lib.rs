//! What another crate of the workspace uses; generic functions are compiled there.

pub trait Area {
    fn area(&self) -> u32;
    /// The same code for all.
    fn unit(&self) -> &'static str {
        "m2"
    }
    fn doubled(&self) -> u32 {
        2 * self.area()
    }
}

pub struct Square(pub u32);
pub struct Circle(pub u32);

impl Area for Square {
    fn area(&self) -> u32 {
        square(self.0)
    }
}

impl Area for Circle {
    fn area(&self) -> u32 {
        3 * square(self.0)
    }
}

const fn square(n: u32) -> u32 {
    n * n
}

#[inline(always)]
pub fn largest<T: Ord + Copy>(items: &[T]) -> Option<T> {
    items.iter().copied().max()
}
