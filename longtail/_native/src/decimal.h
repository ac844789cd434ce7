// The float or double nearest to a decimal number, on any standard library and in any locale.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace longtail {

enum class Number { kGood, kNone, kNotFinite, kGarbage };

// Digits of a decimal number read into an integer: value = mantissa · 10^exponent, except for digits after the 19th,
// which change it by less than 1e-18 of itself.
struct Decimal {
    bool negative = false;
    uint64_t mantissa = 0;
    int exponent = 0;
    bool cut = false;             // there are digits after the 19th
    const char* start = nullptr;  // start of the digits, for the exact method
    const char* stop = nullptr;
    int written = 0;  // the exponent after the 'e'
};

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// The slow method, exact in all cases. The decimal point is removed, because strtod would expect the locale's.
template <typename Real>
Real nearest(const Decimal& number) {
    std::string text;
    int exponent = number.written;
    bool fraction = false;
    for (const char* p = number.start; p < number.stop; p++) {
        if (*p == '.') {
            fraction = true;
        } else {
            text.push_back(*p);
            exponent -= fraction;
        }
    }
    text += 'e';
    text += std::to_string(exponent);
    if constexpr (sizeof(Real) == sizeof(float)) return std::strtof(text.c_str(), nullptr);
    else return std::strtod(text.c_str(), nullptr);
}

// mantissa · 10^exponent in double, for exponents of −22 to 22: powers of ten up to there are exact.
inline double product(const Decimal& number) {
    static const double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const double value = static_cast<double>(number.mantissa);
    return number.exponent < 0 ? value / kPowers[-number.exponent] : value * kPowers[number.exponent];
}

inline void convert(const Decimal& number, float& out) {
    if (number.exponent >= -22 && number.exponent <= 22) {
        const double value = product(number);
        // At most three roundings (mantissa, product, dropped digits) affect `value`: its error is less than four steps
        // of a double. Rounding it to a float is right unless it is that close to the middle of two floats.
        uint64_t bits;
        std::memcpy(&bits, &value, 8);
        const int64_t from_middle = static_cast<int64_t>(bits & 0x1FFFFFFF) - 0x10000000;
        const bool normal = value >= 2.0 * FLT_MIN && value < 0.5 * FLT_MAX;
        if (normal && (from_middle > 4 || from_middle < -4)) {
            out = static_cast<float>(value);
            return;
        }
    }
    out = nearest<float>(number);
}

inline void convert(const Decimal& number, double& out) {
    // Both factors are exact: the one remaining rounding gives the nearest double.
    const bool exact = !number.cut && number.mantissa <= (uint64_t(1) << 53);
    if (exact && number.exponent >= -22 && number.exponent <= 22) out = product(number);
    else out = nearest<double>(number);
}

inline bool is_word(const char* p, const char* end, const char* word) {
    for (; *word; word++, p++)
        if (p >= end || (*p | 0x20) != *word) return false;
    return p == end;
}

// Reads [p, end), which must be exactly one number. If it is not, `out` is not changed.
template <typename Real>
Number parse_number(const char* p, const char* end, Real& out) {
    if (p >= end) return Number::kNone;
    Decimal number;
    if (*p == '-' || *p == '+') number.negative = *p++ == '-';
    number.start = p;
    int digits = 0, dropped = 0, behind_point = 0;
    bool any = false, fraction = false;
    for (; p < end && (is_digit(*p) || (*p == '.' && !fraction)); p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        any = true;
        if (digits < 19) {
            number.mantissa = number.mantissa * 10 + (*p - '0');
            digits += number.mantissa != 0;
            behind_point += fraction;
        } else {
            number.cut = true;
            dropped += !fraction;
        }
    }
    number.stop = p;
    if (!any) {
        if (fraction) return Number::kNone;
        for (const char* word : {"nan", "inf", "infinity"})
            if (is_word(p, end, word)) return Number::kNotFinite;
        return Number::kNone;
    }
    if (p < end && (*p | 0x20) == 'e') {
        const char* q = p + 1;
        const bool down = q < end && *q == '-';
        if (q < end && (*q == '-' || *q == '+')) q++;
        if (q >= end || !is_digit(*q)) return Number::kGarbage;
        int power = 0;
        for (; q < end && is_digit(*q); q++) power = power < 100000 ? power * 10 + (*q - '0') : power;
        number.written = down ? -power : power;
        p = q;
    }
    if (p < end) return Number::kGarbage;
    number.exponent = number.written + dropped - behind_point;
    Real value = 0;
    if (number.mantissa != 0) convert(number, value);
    if (!std::isfinite(value)) return Number::kNotFinite;
    out = number.negative ? -value : value;
    return Number::kGood;
}

}  // namespace longtail
