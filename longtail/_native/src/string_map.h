// Maps strings, and pairs of numbers, to dense numbers in order of first appearance. Open addressing; a string of up to
// eight bytes, like most words, is compared inside its slot and needs one memory access.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace longtail {

// Bytes in the order of a little-endian machine, so that hashes are the same on every machine.
inline uint64_t in_order(uint64_t word) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(word);
#else
    return word;
#endif
}

inline uint64_t load_ordered8(const char* p) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    return in_order(word);
}

// Up to eight bytes as one number, the first lowest, without reading after them: overlapping loads agree where they
// overlap.
inline uint64_t pack_short(const char* p, size_t size) {
    if (size == 8) return load_ordered8(p);
    const auto byte = [p](size_t i) { return static_cast<uint64_t>(static_cast<uint8_t>(p[i])); };
    if (size >= 4) {
        const auto four = [&](size_t i) { return byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24; };
        return four(0) | four(size - 4) << 8 * (size - 4);
    }
    if (size == 0) return 0;
    return byte(0) | byte(size / 2) << 8 * (size / 2) | byte(size - 1) << 8 * (size - 1);
}

inline uint64_t scramble(uint64_t h) {
    h ^= h >> 32;
    h *= 0xFF51AFD7ED558CCDull;
    h ^= h >> 29;
    h *= 0xC4CEB9FE1A85EC53ull;
    return h ^ h >> 32;
}

// The representation of a string in a slot: its bytes if there are at most eight, else a hash.
inline uint64_t tag_of(std::string_view text) {
    const char* p = text.data();
    size_t left = text.size();
    if (left <= 8) return pack_short(p, left);
    uint64_t h = 0x9E3779B97F4A7C15ull;
    for (; left > 8; p += 8, left -= 8) {
        h = (h ^ load_ordered8(p)) * 0xFF51AFD7ED558CCDull;
        h ^= h >> 32;
    }
    return scramble(h ^ pack_short(p, left));
}

inline uint64_t hash_tag(uint64_t tag, size_t size) { return scramble(tag ^ size * 0xC2B2AE3D27D4EB4Full); }
inline uint64_t hash_string(std::string_view text) { return hash_tag(tag_of(text), text.size()); }

// Where in a table of 2^(64 − shift) slots a search starts: one multiplication, whose top bits depend on all others.
inline size_t first_slot(uint64_t key, int shift) {
    key ^= key >> 32;
    return static_cast<size_t>(key * 0x9E3779B97F4A7C15ull >> shift);
}

class StringMap {
public:
    StringMap() : slots_(1 << 10) {}

    int64_t size() const { return static_cast<int64_t>(starts_.size()) - 1; }
    std::string_view operator[](int64_t id) const {
        return {arena_.data() + starts_[id], static_cast<size_t>(starts_[id + 1] - starts_[id])};
    }

    // `tag` is tag_of(text), which the caller may know already.
    int64_t find(std::string_view text, uint64_t tag) const { return slots_[locate(text, tag)].id; }  // −1: none
    int64_t find(std::string_view text) const { return find(text, tag_of(text)); }
    int64_t insert(std::string_view text) { return insert(text, tag_of(text)); }

    int64_t insert(std::string_view text, uint64_t tag) {
        size_t at = locate(text, tag);
        if (slots_[at].id >= 0) return slots_[at].id;
        if (static_cast<size_t>(size() + 1) * 2 > slots_.size()) {
            grow();
            at = locate(text, tag);
        }
        const int64_t id = size();
        slots_[at] = {tag, static_cast<int32_t>(id), static_cast<uint32_t>(text.size())};
        arena_.insert(arena_.end(), text.begin(), text.end());
        starts_.push_back(static_cast<int64_t>(arena_.size()));
        return id;
    }

    // Keeps the strings and their numbers, but nothing can be found or added afterwards.
    void seal() { std::vector<Slot>().swap(slots_); }

private:
    struct Slot {
        uint64_t tag = 0;
        int32_t id = -1;
        uint32_t length = 0;
    };
    std::vector<Slot> slots_;  // 2^(64 − shift_)
    int shift_ = 64 - 10;
    std::vector<int64_t> starts_{0};
    std::vector<char> arena_;

    size_t begin(uint64_t tag, size_t size) const { return first_slot(tag ^ size * 0xC2B2AE3D27D4EB4Full, shift_); }

    size_t locate(std::string_view text, uint64_t tag) const {
        const size_t mask = slots_.size() - 1;
        for (size_t at = begin(tag, text.size());; at = (at + 1) & mask) {
            const Slot& slot = slots_[at];
            if (slot.id < 0) return at;
            if (slot.tag == tag && slot.length == static_cast<uint32_t>(text.size()) &&
                (text.size() <= 8 || (*this)[slot.id] == text))
                return at;
        }
    }

    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        shift_--;
        const size_t mask = slots_.size() - 1;
        for (const Slot& slot : old) {
            if (slot.id < 0) continue;
            size_t at = begin(slot.tag, slot.length);
            while (slots_[at].id >= 0) at = (at + 1) & mask;
            slots_[at] = slot;
        }
    }
};

class PairMap {
public:
    PairMap() : slots_(1 << 8) {}

    static uint64_t pair(int64_t first, int64_t second) { return static_cast<uint64_t>(first) << 32 | second; }

    int64_t size() const { return static_cast<int64_t>(keys_.size()); }
    uint64_t operator[](int64_t id) const { return keys_[id]; }

    int64_t find(uint64_t key) const { return slots_[locate(key)].id; }

    int64_t insert(uint64_t key) {
        size_t at = locate(key);
        if (slots_[at].id >= 0) return slots_[at].id;
        if ((keys_.size() + 1) * 2 > slots_.size()) {
            grow();
            at = locate(key);
        }
        slots_[at] = {key, static_cast<int32_t>(keys_.size())};
        keys_.push_back(key);
        return slots_[at].id;
    }

    void seal() { std::vector<Slot>().swap(slots_); }

private:
    struct Slot {
        uint64_t key = 0;
        int32_t id = -1;
    };
    std::vector<Slot> slots_;  // 2^(64 − shift_)
    int shift_ = 64 - 8;
    std::vector<uint64_t> keys_;

    // the halves are multiplied separately, since the numbers in a pair are small and close to each other
    size_t begin(uint64_t key) const { return first_slot(key * 0xFF51AFD7ED558CCDull, shift_); }

    size_t locate(uint64_t key) const {
        const size_t mask = slots_.size() - 1;
        size_t at = begin(key);
        while (slots_[at].id >= 0 && slots_[at].key != key) at = (at + 1) & mask;
        return at;
    }

    void grow() {
        slots_.assign(slots_.size() * 2, Slot());
        shift_--;
        const size_t mask = slots_.size() - 1;
        for (size_t id = 0; id < keys_.size(); id++) {
            size_t at = begin(keys_[id]);
            while (slots_[at].id >= 0) at = (at + 1) & mask;
            slots_[at] = {keys_[id], static_cast<int32_t>(id)};
        }
    }
};

}  // namespace longtail
