/* SPDX-License-Identifier: Apache-2.0 */
/* NvInferTimingCache.h - timing caches, and what is edited in them. Included by NvInferBuilder.h.
 *
 * A line of a cache is "problem | device | ... | kernel and tactic | nanoseconds spread". The key of an entry stands
 * for all before the kernel, so an entry holds the times of all tactics that were measured for it. */
#ifndef NV_INFER_TIMING_CACHE_H
#define NV_INFER_TIMING_CACHE_H

#include "NvInferRuntime.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace nvinfer1 {

struct TimingCacheKey {
    uint8_t data[16];
};
/* A tactic, and its time. A negative time is no time. */
struct TimingCacheValue {
    uint64_t tacticHash;
    float timingMSec;
    static constexpr uint64_t kINVALID_TACTIC_HASH = UINT64_MAX;
};

namespace detail {

/* FNV-1a. */
inline uint64_t timing_hash(std::string const &text, uint64_t start = 0xcbf29ce484222325u)
{
    for (const char c : text) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return start;
}
inline TimingCacheKey timing_key(std::string const &words)
{
    TimingCacheKey made;
    const uint64_t half[2] = { timing_hash(words), timing_hash(words, 0x6c62272e07bb0142u) };
    std::memcpy(made.data, half, sizeof half);
    return made;
}

/* What follows `name` in a line of the inspector, to the next comma, or to the end. */
inline std::string timing_part(std::string const &line, char const *name, bool is_last = false)
{
    const size_t at = is_last ? line.rfind(name) : line.find(name);
    if (at == std::string::npos) return "";
    const size_t from = at + std::strlen(name), end = is_last ? line.find_last_not_of('\n') + 1 : line.find(',', from);
    return line.substr(from, end - from);
}

struct timing_line {
    std::string whole, words, tactic, time;
    /* Lines that are about no problem (its first word has a colon) belong to no entry. */
    bool is_entry = false;
    explicit timing_line(std::string const &line) : whole(line)
    {
        const size_t last = line.rfind(" | "), first = last ? line.rfind(" | ", last - 1) : last;
        if (last == std::string::npos || first == std::string::npos || first == last) return;
        words = line.substr(0, first);
        tactic = line.substr(first + 3, last - first - 3);
        time = line.substr(last + 3);
        is_entry = words.substr(0, words.find(' ')).find(':') != std::string::npos;
    }
    bool is_of(TimingCacheKey const &key) const
    {
        return is_entry && !std::memcmp(timing_key(words).data, key.data, sizeof key.data);
    }
    /* A tactic that is not to be taken has the time "fails". */
    double milliseconds() const
    {
        return time == "fails" ? std::numeric_limits<double>::infinity() : std::strtod(time.c_str(), nullptr) / 1e6;
    }
};

} // namespace detail

/* Measurements that builds use again. */
class ITimingCache {
  public:
    /* A text that is no timing cache of sinter (TensorRT's, for example) is left out: the cache begins empty. */
    explicit ITimingCache(std::string text) : text_(std::move(text))
    {
        is_foreign_ = !text_.empty() && text_.rfind("sinter timing cache ", 0) != 0;
        if (is_foreign_) text_.clear();
    }
    IHostMemory *serialize() const noexcept { return new detail::text_memory(text_); }
    /* Adds what this cache lacks. Times of another device have other keys, so nothing has to be ignored. */
    bool combine(ITimingCache const &other, bool) noexcept
    {
        std::set<std::string> seen;
        std::string made;
        for (ITimingCache const *from : { static_cast<ITimingCache const *>(this), &other })
            for (detail::timing_line const &line : from->lines())
                if (seen.insert(line.whole.substr(0, line.whole.rfind(" | "))).second) made += line.whole + "\n";
        text_ = made;
        return true;
    }
    bool reset() noexcept
    {
        text_.clear();
        return true;
    }
    /* How many keys there are; the first `capacity` of them. */
    int64_t queryKeys(TimingCacheKey *keys, int64_t capacity) const noexcept
    {
        const std::vector<std::string> all = entries();
        for (size_t i = 0; keys && i < all.size() && static_cast<int64_t>(i) < capacity; i++)
            keys[i] = detail::timing_key(all[i]);
        return static_cast<int64_t>(all.size());
    }
    /* The fastest tactic; an invalid value where there is none. */
    TimingCacheValue query(TimingCacheKey const &key) const noexcept
    {
        TimingCacheValue made{ TimingCacheValue::kINVALID_TACTIC_HASH, -1 };
        double least = std::numeric_limits<double>::infinity();
        for (detail::timing_line const &line : lines()) {
            if (!line.is_of(key) || line.milliseconds() >= least) continue;
            least = line.milliseconds();
            made = { detail::timing_hash(line.tactic), static_cast<float>(least) };
        }
        return made;
    }
    /* Makes a measured tactic of the key the one that builds take, with this time; NaN removes the key. False: nothing
     * is known of the key or of the tactic, or the time is no time. */
    bool update(TimingCacheKey const &key, TimingCacheValue const &value) noexcept
    {
        const bool is_removed = std::isnan(value.timingMSec);
        bool is_known = false;
        std::string made;
        for (detail::timing_line const &line : lines()) {
            if (!line.is_of(key)) {
                made += line.whole + "\n";
                continue;
            }
            const bool is_it = detail::timing_hash(line.tactic) == value.tacticHash;
            is_known = is_known || is_removed || is_it;
            char time[32];
            std::snprintf(time, sizeof time, "%.9g", static_cast<double>(value.timingMSec) * 1e6);
            if (!is_removed) made += line.words + " | " + line.tactic + " | " + (is_it ? time : "fails") + "\n";
        }
        if (!is_known || value.timingMSec <= 0) return false;
        text_ = made;
        return true;
    }
    std::string &text() { return text_; }
    bool is_foreign() const { return is_foreign_; }
    /* What is known of each key, as lines in the words of TensorRT's log: the hashes that update() takes. A key has the
     * names of the layers that compute its problem, or that of the problem. `layers`: the inspector's lines. */
    std::vector<std::string> described(std::vector<std::string> const &layers = {}) const
    {
        std::vector<std::string> made;
        for (std::string const &words : entries()) {
            const std::string problem = words.substr(0, words.find(" | "));
            std::vector<std::pair<std::string, std::string>> ops; /* a name, and the tactic of the engine */
            for (std::string const &layer : layers)
                if (detail::timing_part(layer, "Problem: ", true) == problem)
                    ops.emplace_back(detail::timing_part(layer, "Name: "), detail::timing_part(layer, "Tactic: "));
            if (ops.empty()) ops.emplace_back(problem, "");
            for (auto const &op : ops) describe(words, op.first, op.second, made);
        }
        return made;
    }

  private:
    std::vector<detail::timing_line> lines() const
    {
        std::vector<detail::timing_line> made;
        for (size_t at = 0, end; at < text_.size(); at = end + 1) {
            end = std::min(text_.find('\n', at), text_.size());
            made.emplace_back(text_.substr(at, end - at));
        }
        return made;
    }
    void describe(std::string const &words, std::string const &op, std::string const &tactic,
                  std::vector<std::string> &made) const
    {
        const TimingCacheKey key = detail::timing_key(words);
        char part[96];
        std::string name = "0x";
        for (const uint8_t byte : key.data) {
            std::snprintf(part, sizeof part, "%02x", static_cast<unsigned>(byte));
            name += part;
        }
        std::vector<detail::timing_line> rows;
        for (detail::timing_line const &line : lines())
            if (line.is_entry && line.words == words && line.time != "fails") rows.push_back(line);
        std::stable_sort(rows.begin(), rows.end(), [](detail::timing_line const &a, detail::timing_line const &b) {
            return a.milliseconds() < b.milliseconds();
        });
        made.push_back("Autotuning op " + op + "(key: " + name + "):");
        made.push_back("tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, "
                       "tactic_shape");
        size_t taken = 0;
        for (size_t i = 0; i < rows.size(); i++) {
            const size_t space = rows[i].tactic.find(' '), dot = rows[i].tactic.find('.');
            const std::string shape = space == std::string::npos ? "" : rows[i].tactic.substr(space + 1);
            if (!taken && i && (' ' + shape + ' ').find(' ' + tactic + ' ') != std::string::npos &&
                (' ' + rows[0].tactic + ' ').find(' ' + tactic + ' ') == std::string::npos)
                taken = i;
            std::snprintf(part, sizeof part, "%zu, %.6g, %.2f, 1.00, ", i, rows[i].milliseconds(),
                          rows[i].milliseconds() / rows[0].milliseconds());
            made.push_back(part + rows[i].tactic.substr(0, std::min(space, dot)) + ", ");
            std::snprintf(part, sizeof part, "0x%016llx, ",
                          static_cast<unsigned long long>(detail::timing_hash(rows[i].tactic)));
            made.back() += part + shape;
        }
        if (rows.empty()) return;
        std::snprintf(part, sizeof part, "The selected tactic is (tactic hash, cost(in ms)):0x%016llx, %.6g",
                      static_cast<unsigned long long>(detail::timing_hash(rows[taken].tactic)),
                      rows[taken].milliseconds());
        made.push_back(part);
    }
    /* The words of each key, in their order. */
    std::vector<std::string> entries() const
    {
        std::set<std::string> seen;
        std::vector<std::string> made;
        for (detail::timing_line const &line : lines())
            if (line.is_entry && seen.insert(line.words).second) made.push_back(line.words);
        return made;
    }
    std::string text_;
    bool is_foreign_ = false;
};

} // namespace nvinfer1

#endif
