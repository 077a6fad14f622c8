/* SPDX-License-Identifier: Apache-2.0 */
/* exec_flags.h - the command line of `sinter exec`: the rows of exec_flags.def, and what was given. The parser, --help,
 * docs/trtexec.md and the test of all flags come from the rows. */
#ifndef CLI_EXEC_FLAGS_H
#define CLI_EXEC_FLAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How a value is written. BARE takes none; ANY may have one; the numbers are COUNT (0 and more), WHOLE (-1 and more),
 * REAL (0 and more) and SECONDS (0 and more, or -1). SIGNED: words of a list, with commas, + or - before each. */
typedef enum exec_kind {
    EXEC_BARE, EXEC_TEXT, EXEC_ANY, EXEC_COUNT, EXEC_WHOLE, EXEC_REAL, EXEC_SECONDS, EXEC_WORD, EXEC_SHAPES, EXEC_FILES,
    EXEC_SIZES, EXEC_PERCENTS, EXEC_DEVICE, EXEC_SIGNED
} exec_kind;
typedef enum exec_effect { EXEC_WORKS, EXEC_ALWAYS, EXEC_NOTHING, EXEC_REFUSED } exec_effect;
typedef enum exec_group {
    EXEC_MODEL, EXEC_BUILD, EXEC_SYSTEM, EXEC_INFERENCE, EXEC_ACCURACY, EXEC_REPORT, EXEC_TUNING, EXEC_GROUPS
} exec_group;

typedef enum exec_id {
#define FLAG(name, kind, value, effect, group, versions, text) FLAG_##name,
#define WORD_IS(flag, word, effect, text)
#include "exec_flags.def"
#undef FLAG
#undef WORD_IS
    EXEC_FLAGS
} exec_id;

typedef struct exec_flag {
    const char *name;
    exec_kind   kind;
    const char *value;
    exec_effect effect;
    exec_group  group;
    const char *versions, *text;
} exec_flag;
extern const exec_flag exec_flags[EXEC_FLAGS];

/* What was given, in the order of the command line. Texts belong to argv. */
typedef struct exec_given { exec_id id; const char *value; } exec_given;
typedef struct exec_args {
    exec_given *given;
    uint32_t    count;
    const char *value[EXEC_FLAGS];      /* the last of each flag; "" of a bare one; NULL: not given */
} exec_args;

/* Reads argv[first …]. False: everything wrong has been added to `wrong`, a line each. */
struct kept_text;
bool exec_parse(int argc, char **argv, int first, exec_args *out, struct kept_text *wrong);
void exec_args_free(exec_args *x);

bool        exec_has(const exec_args *x, exec_id id);
bool        exec_is(const exec_args *x, exec_id id, const char *word);  /* WORD: given, or the default */
double      exec_number(const exec_args *x, exec_id id, double otherwise);
const char *exec_text(const exec_args *x, exec_id id);                  /* "" if not given */

/* Says what becomes of flags that are given and do not just work: refusals as errors, the others as warnings and notes.
 * False: one is refused. */
bool exec_explain(const exec_args *x);
void exec_help(FILE *to);
void exec_page(FILE *to);       /* docs/trtexec.md */

#endif
