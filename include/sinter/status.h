/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - what every call returns, and the chain of causes behind a failure.
 *
 * A status says what the caller should do; the text chain says what happened. The chain is a fixed-size struct in the
 * caller's frame: reporting needs no memory, no thread-local state and nothing to free. */
#ifndef SINTER_STATUS_H
#define SINTER_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SINTER_STATIC) || !defined(__GNUC__)
#define SINTER_API
#else
#define SINTER_API __attribute__((visibility("default")))
#endif

#if defined(__GNUC__)
#define SINTER_MUST_USE __attribute__((warn_unused_result))
#else
#define SINTER_MUST_USE
#endif

/* X(name, value, meaning) */
#define SINTER_STATUS_MAP(X)                                                       \
    X(OK, 0, "ok")                                                                 \
    X(INVALID_ARG, 1, "the caller broke the documented contract")                  \
    X(INVALID_MODEL, 2, "the input model or engine file is malformed")             \
    X(UNSUPPORTED, 3, "valid, but this build cannot do it")                        \
    X(NO_MEMORY, 4, "host or device memory is exhausted, or a limit was reached")  \
    X(DEVICE, 5, "the driver or device reported a failure")                        \
    X(IO, 6, "reading or writing a file failed")                                   \
    X(INCOMPATIBLE, 7, "the engine was built for another version or device")       \
    X(INTERNAL, 8, "an invariant broke: please report a bug")                      \
    X(CANCELLED, 9, "the caller cancelled it")

typedef enum sinter_status {
#define SINTER_X(name, value, text) SINTER_##name = value,
    SINTER_STATUS_MAP(SINTER_X)
#undef SINTER_X
} sinter_status;

enum { SINTER_ERROR_TEXT_SIZE = 2048 };

/* A failure and its causes, innermost first, one line each, NUL-terminated. Zero-initialise the struct before use. A
 * call that succeeds does not change it. Text that does not fit is cut at the end. */
typedef struct sinter_error {
    sinter_status status;
    uint32_t      length;                      /* bytes of text in use, without the NUL */
    char          text[SINTER_ERROR_TEXT_SIZE];
} sinter_error;

/* The meaning of a status, in a few lower-case words. Never NULL, even if the value is no status. */
SINTER_API const char *sinter_status_text(sinter_status status);

#ifdef __cplusplus
}
#endif
#endif
