struct Shape {
    explicit Shape(int n);
    virtual ~Shape();
    virtual int area() const = 0;
    int n;
};

struct Round : virtual Shape {
    explicit Round(int n) : Shape(n) {}
    int area() const override { return n * 3; }
    Round operator+(const Round &other) const { return Round(n + other.n); }
};
