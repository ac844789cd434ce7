// Checks shared by every kernel that takes texts.
#pragma once

#include "common.h"

namespace longtail {

// The number of texts; throws if offsets decrease or point outside the data, so that no kernel reads there.
int64_t check_offsets(const In<uint8_t>& data, const In<int64_t>& offsets);

// Texts, some of which (at `rows`, ascending) are read in another spelling.
class SpelledTexts {
public:
    SpelledTexts(const In<uint8_t>& data, const In<int64_t>& offsets, const In<int64_t>& rows,
                 const In<uint8_t>& new_data, const In<int64_t>& new_offsets);
    int64_t size() const { return size_; }
    const int64_t* offsets() const { return cut_; }

    // Calls read(p, end) for the bytes of the texts first … last − 1.
    template <typename Read>
    void each(int64_t first, int64_t last, Read read) const {
        const int64_t* row = std::lower_bound(rows_, rows_ + replaced_, first);
        for (int64_t i = first; i < last; i++) {
            const bool other = row < rows_ + replaced_ && *row == i;
            const int64_t* cut = other ? new_cut_ + (row++ - rows_) : cut_ + i;
            const uint8_t* data = other ? new_data_ : data_;
            read(data + cut[0], data + cut[1]);
        }
    }

private:
    const uint8_t *data_, *new_data_;
    const int64_t *cut_, *new_cut_, *rows_;
    int64_t size_, replaced_;
};

}  // namespace longtail
