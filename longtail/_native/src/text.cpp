// Kernels over many texts in one buffer: gathering rows, counting words, hashing.
#include "text.h"

#include "unicode.h"

namespace longtail {

int64_t check_offsets(const In<uint8_t>& data, const In<int64_t>& offsets) {
    const int64_t n = static_cast<int64_t>(offsets.shape(0)) - 1;
    const int64_t* cut = offsets.data();
    check(n >= 0 && cut[0] >= 0 && cut[n] <= static_cast<int64_t>(data.shape(0)),
          "texts: offsets reach outside the data");
    bool falls = false;
    for (int64_t i = 0; i < n; i++) falls |= cut[i + 1] < cut[i];
    check(!falls, "texts: offsets fall");
    return n;
}

SpelledTexts::SpelledTexts(const In<uint8_t>& data, const In<int64_t>& offsets, const In<int64_t>& rows,
                           const In<uint8_t>& new_data, const In<int64_t>& new_offsets)
    : data_(data.data()), new_data_(new_data.data()), cut_(offsets.data()), new_cut_(new_offsets.data()),
      rows_(rows.data()), size_(check_offsets(data, offsets)), replaced_(check_offsets(new_data, new_offsets)) {
    check(replaced_ == static_cast<int64_t>(rows.shape(0)), "texts: as many rows as other spellings are needed");
    for (int64_t j = 0; j < replaced_; j++)
        check(rows_[j] >= 0 && rows_[j] < size_ && (j == 0 || rows_[j - 1] < rows_[j]), "texts: row out of range");
}

namespace {

nb::tuple gather_texts(In<uint8_t> data, In<int64_t> offsets, In<int64_t> rows) {
    const int64_t n = static_cast<int64_t>(offsets.shape(0)) - 1, m = rows.shape(0);
    const int64_t *cut = offsets.data(), *want = rows.data(), size = data.shape(0);
    auto new_offsets = new_numpy<int64_t>({size_t(m + 1)});
    int64_t* out_cut = new_offsets.data();
    out_cut[0] = 0;
    for (int64_t i = 0; i < m; i++) {  // only the requested texts are checked: they may be few of many
        check(want[i] >= 0 && want[i] < n, "texts: row out of range");
        const int64_t start = cut[want[i]], stop = cut[want[i] + 1];
        check(start >= 0 && start <= stop && stop <= size, "texts: offsets fall or reach outside the data");
        out_cut[i + 1] = out_cut[i] + stop - start;
    }
    auto new_data = new_numpy<uint8_t>({size_t(out_cut[m])});
    uint8_t* out = new_data.data();
    const uint8_t* in = data.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(m, 4096, [&](int64_t i) {
            std::memcpy(out + out_cut[i], in + cut[want[i]], out_cut[i + 1] - out_cut[i]);
        });
    }
    return nb::make_tuple(new_data, new_offsets);
}

// Calls of(p, end) for the bytes of each text.
template <typename T, typename Of>
Out<T> map_texts(const In<uint8_t>& data, const In<int64_t>& offsets, Of of) {
    const int64_t n = check_offsets(data, offsets);
    auto values = new_numpy<T>({size_t(n)});
    T* out = values.data();
    const uint8_t* in = data.data();
    const int64_t* cut = offsets.data();
    {
        nb::gil_scoped_release nogil;
        parallel_for(n, 256, [&](int64_t i) { out[i] = of(in + cut[i], in + cut[i + 1]); });
    }
    return values;
}

// Words of each text: runs of anything but white space.
Out<int32_t> count_words(In<uint8_t> data, In<int64_t> offsets) {
    return map_texts<int32_t>(data, offsets, [](const uint8_t* p, const uint8_t* end) {
        int32_t words = 0;
        bool inside = false;
        while (p < end) {
            const bool space = char_kind(next_code(p, end)) & kSpace;
            words += !space && !inside;
            inside = !space;
        }
        return words;
    });
}

uint64_t mix(uint64_t h) {
    h ^= h >> 33;
    h *= 0xFF51AFD7ED558CCDull;
    h ^= h >> 33;
    h *= 0xC4CEB9FE1A85EC53ull;
    return h ^ h >> 33;
}

uint64_t hash_bytes(const uint8_t* p, size_t size, uint64_t seed) {
    uint64_t h = mix(mix(seed + 0x9E3779B97F4A7C15ull) ^ size);  // mixed, so that no byte of the text can cancel the size
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        std::memcpy(&word, p, 8);
        h = mix(h ^ word) + 0x9E3779B97F4A7C15ull;
    }
    uint64_t word = 0;
    std::memcpy(&word, p, size);
    return mix(h ^ word);
}

// Lower case, without digits and punctuation, white space folded to single blanks: equal for two texts that are
// "the same except for numbers".
void fold_text(const uint8_t* p, const uint8_t* end, std::string& out) {
    out.clear();
    bool gap = false;
    while (p < end) {
        const uint32_t code = next_code(p, end);
        const uint8_t kind = char_kind(code);
        if (kind & kSpace) gap = true;
        if (!(kind & kLetterMask) || (kind & kDigit) || code == '_') continue;
        if (gap && !out.empty()) out.push_back(' ');
        gap = false;
        append_utf8(out, char_lower(code));
    }
}

// A 64-bit hash of each text, or (fold) of its folded form.
Out<uint64_t> hash_texts(In<uint8_t> data, In<int64_t> offsets, uint64_t seed, bool fold) {
    return map_texts<uint64_t>(data, offsets, [=](const uint8_t* p, const uint8_t* end) {
        thread_local std::string folded;
        folded.clear();
        if (fold) fold_text(p, end, folded);
        // a text of only digits and punctuation folds to nothing: its own bytes are hashed
        return folded.empty() ? hash_bytes(p, end - p, seed)
                              : hash_bytes(reinterpret_cast<const uint8_t*>(folded.data()), folded.size(), seed);
    });
}

}  // namespace

void bind_text(nb::module_& m) {
    m.def("gather_texts", &gather_texts);
    m.def("count_words", &count_words);
    m.def("hash_texts", &hash_texts);
}

}  // namespace longtail
