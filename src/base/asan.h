/* SPDX-License-Identifier: Apache-2.0 */
/* asan.h - tells AddressSanitizer which bytes of an arena nobody may touch. Does nothing in other builds. */
#ifndef BASE_ASAN_H
#define BASE_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#define BASE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BASE_ASAN 1
#endif
#endif

#if defined(BASE_ASAN)
#include <sanitizer/asan_interface.h>
#define ASAN_POISON(at, size) __asan_poison_memory_region((at), (size))
#define ASAN_UNPOISON(at, size) __asan_unpoison_memory_region((at), (size))
enum { ASAN_REDZONE = 16 };
#else
#define ASAN_POISON(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON(at, size) ((void)(at), (void)(size))
enum { ASAN_REDZONE = 0 };
#endif

#endif
