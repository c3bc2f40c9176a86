/* C++: virtual calls, templates of the standard library, exceptions. perf tells the truth.
 *
 * shapes: small virtual functions and such as are inlined; words: maps, strings and sorting;
 * throws: functions that are left by exceptions. */
#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include "truth.h"

namespace geometry {
struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
};

class Square : public Shape {
	double side_;

public:
	explicit Square(double side) : side_(side) {}
	double side() const { return side_; }
	double area() const override { return side() * side(); }
};

class Polygon : public Shape {
	std::vector<double> x_, y_;

public:
	explicit Polygon(unsigned corners)
	{
		for (unsigned i = 0; i < corners; i++) {
			x_.push_back(i * i % 17);
			y_.push_back(i * 7 % 23);
		}
	}
	double cross(size_t a, size_t b) const { return x_[a] * y_[b] - x_[b] * y_[a]; }
	double area() const override
	{
		double twice = 0;
		for (size_t i = 0; i < x_.size(); i++)
			twice += cross(i, (i + 1) % x_.size());
		return twice / 2;
	}
};

template <class Fold>
ALONE double fold(const std::vector<std::unique_ptr<Shape>> &shapes, Fold step)
{
	double all = 0;
	for (const auto &shape : shapes)
		all = step(all, *shape);
	return all;
}
} // namespace geometry

OUTSIDE static void shapes(unsigned rounds)
{
	std::vector<std::unique_ptr<geometry::Shape>> all;
	uint64_t state = 88172645463325252u;
	for (int i = 0; i < 1000; i++) {
		if (chance(&state) % 4)
			all.push_back(std::make_unique<geometry::Square>(i));
		else
			all.push_back(std::make_unique<geometry::Polygon>(3 + chance(&state) % 20));
	}
	auto add = [](double sum, const geometry::Shape &shape) { return sum + shape.area(); };
	for (unsigned i = 0; i < rounds * 20; i++) {
		sink = (uint64_t)geometry::fold(all, add);
		jitter(1000);
	}
}

ALONE std::string word(uint64_t seed)
{
	std::string text;
	for (int i = 0; i < 12; i++, seed /= 26)
		text += (char)('a' + seed % 26);
	return text;
}

static bool is_before(const std::string &a, const std::string &b)
{
	return a.compare(b) < 0;
}

ALONE void count(std::map<std::string, unsigned> &counts, const std::string &text)
{
	counts[text.substr(0, 2)]++;
}

ALONE void arrange(std::vector<std::string> &words)
{
	std::sort(words.begin(), words.end(), is_before);
}

OUTSIDE static void words(unsigned rounds)
{
	uint64_t state = 88172645463325252u;
	while (rounds--) {
		std::vector<std::string> all;
		std::map<std::string, unsigned> counts;
		for (int i = 0; i < 2000; i++)
			all.push_back(word(chance(&state)));
		for (const auto &text : all)
			count(counts, text);
		arrange(all);
		sink = counts.size() + (uint64_t)all[0][0];
	}
}

ALONE uint64_t check(uint64_t x)
{
	UNITS(x, 1000)
	if (x % 4 != 0)
		throw std::runtime_error("odd");
	return x;
}

ALONE uint64_t handle(uint64_t x)
{
	UNITS(x, 500)
	try {
		return check(x) + 1;
	} catch (const std::runtime_error &error) {
		return x + (uint64_t)error.what()[0];
	}
}

WORK(settle, 2000)

OUTSIDE static void throws(unsigned rounds)
{
	for (unsigned i = 0; i < rounds * 100; i++) {
		sink = settle(handle(sink));
		jitter(1000);
	}
}

SCENARIOS({"shapes", shapes}, {"words", words}, {"throws", throws})
