#include "shapes.h"

Shape::Shape(int n) : n(n) {}
Shape::~Shape() {}
