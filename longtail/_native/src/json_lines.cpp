// Reads columns from JSON lines, without a Python object per value. Anything unusual (bad JSON, a value of another type
// than requested, a duplicate key) makes the call return None: the caller then uses a full parser, line by line, which
// reports the line and the reason.
#include "common.h"
#include "decimal.h"
#include "unicode.h"
#include "utf8.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <charconv>
#include <cmath>

namespace longtail {
namespace {

struct Odd {};  // thrown if the full parser is needed

struct StringColumn {  // one string per row; length −1 if the field is missing
    std::vector<uint8_t> data;
    std::vector<int64_t> lengths;
};

struct ValueColumn {  // a list of integers and strings per row; length −1 if the field is missing
    std::vector<int64_t> lengths, integers;
    std::vector<uint8_t> is_string;
    StringColumn strings;
};

struct NumberColumn {  // a list of numbers per row; length −1 if the field is missing
    std::vector<int64_t> lengths;
    std::vector<double> numbers;
};

struct IntegerColumn {  // one integer per row; the lowest int64 if the field is missing
    std::vector<int64_t> values;
};
constexpr int64_t kMissing = INT64_MIN;

class Parser {
public:
    Parser(const uint8_t* p, const uint8_t* end, const std::vector<std::string>& strings,
           const std::vector<std::string>& values, const std::vector<std::string>& numbers,
           const std::vector<std::string>& integers)
        : strings(strings.size()), values(values.size()), numbers(numbers.size()), integers(integers.size()),
          p_(p), end_(end), string_names_(strings), value_names_(values), number_names_(numbers),
          integer_names_(integers) {}

    std::vector<StringColumn> strings;
    std::vector<ValueColumn> values;
    std::vector<NumberColumn> numbers;
    std::vector<IntegerColumn> integers;
    std::vector<int64_t> lines;  // line of each object, counted from 0; blank lines count too

    void run() {
        if (!valid_utf8(p_, end_)) throw Odd();
        for (int64_t line = 0; p_ < end_; line++) {
            blanks();
            if (p_ < end_ && *p_ != '\n') {
                row();
                lines.push_back(line);
                blanks();
            }
            if (p_ < end_ && *p_++ != '\n') throw Odd();
        }
    }

private:
    const uint8_t *p_, *end_;
    const std::vector<std::string>&string_names_, &value_names_, &number_names_, &integer_names_;
    std::vector<uint8_t> key_;

    // JSON's white space except the line feed, which ends the row here
    void blanks() {
        while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r')) p_++;
    }
    void expect(uint8_t c) {
        if (p_ >= end_ || *p_ != c) throw Odd();
        p_++;
    }
    bool take(uint8_t c) {
        if (p_ < end_ && *p_ == c) return p_++, true;
        return false;
    }

    void row() {
        const size_t before = lines.size();
        object([&] { field(before); });
        for (auto& c : strings) if (c.lengths.size() == before) c.lengths.push_back(-1);
        for (auto& c : values) if (c.lengths.size() == before) c.lengths.push_back(-1);
        for (auto& c : numbers) if (c.lengths.size() == before) c.lengths.push_back(-1);
        for (auto& c : integers) if (c.values.size() == before) c.values.push_back(kMissing);
    }

    // Calls value() at each value of an object; its key is in key_.
    template <typename Value>
    void object(Value value) {
        expect('{');
        blanks();
        if (take('}')) return;
        do {
            blanks();
            key_.clear();
            string(key_);
            blanks();
            expect(':');
            blanks();
            value();
            blanks();
        } while (take(','));
        expect('}');
    }

    bool is(const std::string& name) const {
        return key_.size() == name.size() && std::memcmp(key_.data(), name.data(), name.size()) == 0;
    }

    void field(size_t before) {
        for (size_t i = 0; i < string_names_.size(); i++)
            if (is(string_names_[i])) {
                if (strings[i].lengths.size() != before) throw Odd();
                const size_t start = strings[i].data.size();
                string(strings[i].data);
                strings[i].lengths.push_back(strings[i].data.size() - start);
                return;
            }
        for (size_t i = 0; i < value_names_.size(); i++)
            if (is(value_names_[i])) return value_list(values[i], before);
        for (size_t i = 0; i < number_names_.size(); i++)
            if (is(number_names_[i])) return number_list(numbers[i], before);
        for (size_t i = 0; i < integer_names_.size(); i++)
            if (is(integer_names_[i])) {
                if (integers[i].values.size() != before) throw Odd();
                integers[i].values.push_back(integer());
                return;
            }
        skip(0);
    }

    template <typename Each>
    int64_t list(Each each) {
        int64_t count = 0;
        expect('[');
        blanks();
        if (take(']')) return 0;
        do {
            blanks();
            each();
            blanks();
            count++;
        } while (take(','));
        expect(']');
        return count;
    }

    void value_list(ValueColumn& column, size_t before) {
        if (column.lengths.size() != before) throw Odd();
        column.lengths.push_back(list([&] {
            const bool text = p_ < end_ && *p_ == '"';
            column.is_string.push_back(text);
            if (text) {
                const size_t start = column.strings.data.size();
                string(column.strings.data);
                column.strings.lengths.push_back(column.strings.data.size() - start);
            } else {
                column.integers.push_back(integer());
            }
        }));
    }

    void number_list(NumberColumn& column, size_t before) {
        if (column.lengths.size() != before) throw Odd();
        column.lengths.push_back(list([&] {
            const uint8_t* start = p_;
            number();
            column.numbers.push_back(to_double(start));
        }));
    }

    int64_t integer() {
        const uint8_t* start = p_;
        if (number()) throw Odd();  // 1.0 and 1e3 are not integers
        int64_t value = 0;
        auto end = std::from_chars(reinterpret_cast<const char*>(start), reinterpret_cast<const char*>(p_), value);
        if (end.ec != std::errc() || value == kMissing) throw Odd();
        return value;
    }

    // The number from `start` to p_; infinite if it is too large.
    double to_double(const uint8_t* start) const {
        double value = INFINITY;
        parse_number(reinterpret_cast<const char*>(start), reinterpret_cast<const char*>(p_), value);
        return value;
    }

    void digits() {
        const uint8_t* start = p_;
        while (p_ < end_ && *p_ >= '0' && *p_ <= '9') p_++;
        if (p_ == start) throw Odd();
    }

    // Skips a JSON number; returns whether it has a fraction or an exponent.
    bool number() {
        const uint8_t* start = p_;
        bool real = false, power = false;
        take('-');
        if (!take('0')) digits();
        if (take('.')) digits(), real = true;
        if (take('e') || take('E')) {
            if (!take('+')) take('-');
            digits();
            real = power = true;
        }
        // 1e999 is infinite as a double, which full parsers refuse
        if ((power || p_ - start > 300) && !std::isfinite(to_double(start))) throw Odd();
        return real;
    }

    void skip(int depth) {
        if (p_ >= end_ || depth > 200) throw Odd();
        switch (*p_) {
            case '"': key_.clear(); string(key_); return;
            case '[': list([&] { skip(depth + 1); }); return;
            case '{': object([&] { skip(depth + 1); }); return;
            case 't': return word("true");
            case 'f': return word("false");
            case 'n': return word("null");
            default: number();
        }
    }

    void word(const char* text) {
        for (; *text; text++) expect(static_cast<uint8_t>(*text));
    }

    // Appends the string at p_ to `out`, escapes resolved.
    void string(std::vector<uint8_t>& out) {
        expect('"');
        for (;;) {
            const uint8_t* start = p_;
            p_ = plain_end(p_, end_);
            out.insert(out.end(), start, p_);
            if (p_ >= end_ || *p_ < 0x20) throw Odd();
            if (*p_++ == '"') return;
            escape(out);
        }
    }

    uint32_t hex4() {
        if (end_ - p_ < 4) throw Odd();
        uint32_t code = 0;
        for (int i = 0; i < 4; i++) {
            const uint8_t c = *p_++, low = c | 0x20;
            if (c >= '0' && c <= '9') code = code << 4 | (c - '0');
            else if (low >= 'a' && low <= 'f') code = code << 4 | (low - 'a' + 10);
            else throw Odd();
        }
        return code;
    }

    void escape(std::vector<uint8_t>& out) {
        if (p_ >= end_) throw Odd();
        switch (*p_++) {
            case '"': out.push_back('"'); return;
            case '\\': out.push_back('\\'); return;
            case '/': out.push_back('/'); return;
            case 'b': out.push_back('\b'); return;
            case 'f': out.push_back('\f'); return;
            case 'n': out.push_back('\n'); return;
            case 'r': out.push_back('\r'); return;
            case 't': out.push_back('\t'); return;
            case 'u': break;
            default: throw Odd();
        }
        uint32_t code = hex4();
        if (code >= 0xDC00 && code < 0xE000) throw Odd();
        if (code >= 0xD800 && code < 0xDC00) {  // a pair of surrogates
            expect('\\');
            expect('u');
            const uint32_t low = hex4();
            if (low < 0xDC00 || low >= 0xE000) throw Odd();
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        std::string bytes;
        append_utf8(bytes, code);
        out.insert(out.end(), bytes.begin(), bytes.end());
    }
};

nb::object json_columns(nb::bytes block, const std::vector<std::string>& strings,
                        const std::vector<std::string>& values, const std::vector<std::string>& numbers,
                        const std::vector<std::string>& integers) {
    const auto* data = reinterpret_cast<const uint8_t*>(block.c_str());
    Parser parser(data, data + block.size(), strings, values, numbers, integers);
    {
        nb::gil_scoped_release nogil;
        try {
            parser.run();
        } catch (const Odd&) {
            nb::gil_scoped_acquire gil;
            return nb::none();
        }
    }
    nb::list text_out, value_out, number_out, integer_out;
    for (auto& c : parser.strings)
        text_out.append(nb::make_tuple(to_numpy(std::move(c.data)), to_numpy(std::move(c.lengths))));
    for (auto& c : parser.values)
        value_out.append(nb::make_tuple(to_numpy(std::move(c.lengths)), to_numpy(std::move(c.is_string)),
                                        to_numpy(std::move(c.integers)), to_numpy(std::move(c.strings.data)),
                                        to_numpy(std::move(c.strings.lengths))));
    for (auto& c : parser.numbers)
        number_out.append(nb::make_tuple(to_numpy(std::move(c.lengths)), to_numpy(std::move(c.numbers))));
    for (auto& c : parser.integers) integer_out.append(to_numpy(std::move(c.values)));
    return nb::make_tuple(to_numpy(std::move(parser.lines)), text_out, value_out, number_out, integer_out);
}

}  // namespace

void bind_json_lines(nb::module_& m) { m.def("json_columns", &json_columns); }

}  // namespace longtail
