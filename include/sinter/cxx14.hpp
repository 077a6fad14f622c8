/* SPDX-License-Identifier: Apache-2.0 */
/* cxx14.hpp - what sinter.hpp uses of C++17's library, also for C++14: many programs for TensorRT are compiled with
 * -std=c++14, above all parsers of DeepStream. With C++17 and later these are the standard's own types. Compilers take
 * the language of C++17 in these headers as an extension; sinter.hpp says why there are no warnings. */
#ifndef SINTER_CXX14_HPP
#define SINTER_CXX14_HPP

#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#if __cplusplus >= 201703L
#include <optional>
#include <string_view>
#include <variant>
#endif

namespace sinter {
namespace standard {

#if __cplusplus >= 201703L
using std::apply;
using std::monostate;
using std::optional;
using std::string_view;
#else
struct monostate {};

class string_view {
public:
    string_view() = default;
    string_view(const char *data, std::size_t size) : data_(data), size_(size) {}
    string_view(const char *text) : data_(text), size_(std::strlen(text)) {}
    string_view(const std::string &text) : data_(text.data()), size_(text.size()) {}
    const char *data() const { return data_; }
    std::size_t size() const { return size_; }
    bool        empty() const { return size_ == 0; }
    const char *begin() const { return data_; }
    const char *end() const { return data_ + size_; }
    char        operator[](std::size_t i) const { return data_[i]; }
    explicit operator std::string() const { return std::string(data_, size_); }

private:
    const char *data_ = "";
    std::size_t size_ = 0;
};
inline bool operator==(string_view a, string_view b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}
inline bool operator!=(string_view a, string_view b) { return !(a == b); }

template <class T> class optional {
public:
    optional() = default;
    optional(const optional &other) { if (other.has_) emplace(*other); }
    optional(optional &&other) noexcept { if (other.has_) emplace(std::move(*other)); }
    optional(const T &value) { emplace(value); }
    optional &operator=(optional other) noexcept
    {
        reset();
        if (other.has_) emplace(std::move(*other));
        return *this;
    }
    ~optional() { reset(); }
    template <class... A> T &emplace(A &&...arguments)
    {
        reset();
        T *made = new (static_cast<void *>(&room_)) T(std::forward<A>(arguments)...);
        has_ = true;
        return *made;
    }
    void reset()
    {
        if (has_) (**this).~T();
        has_ = false;
    }
    bool     has_value() const noexcept { return has_; }
    explicit operator bool() const noexcept { return has_; }
    T       &operator*() { return *reinterpret_cast<T *>(&room_); }
    const T &operator*() const { return *reinterpret_cast<const T *>(&room_); }
    T       *operator->() { return &**this; }
    const T *operator->() const { return &**this; }

private:
    typename std::aligned_storage<sizeof(T), alignof(T)>::type room_;
    bool has_ = false;
};

template <class F, class T, std::size_t... I> decltype(auto) apply_at(F &&f, T &&list, std::index_sequence<I...>)
{
    return std::forward<F>(f)(std::get<I>(std::forward<T>(list))...);
}
template <class F, class T> decltype(auto) apply(F &&f, T &&list)
{
    return apply_at(std::forward<F>(f), std::forward<T>(list),
                    std::make_index_sequence<std::tuple_size<std::decay_t<T>>::value>());
}
#endif

} // namespace standard
} // namespace sinter

#endif
