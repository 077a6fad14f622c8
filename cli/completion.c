/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - `sinter completion` and `sinter man`: the tables of verbs, options and flags as scripts for shells and
 * as a manual page. */
#include "args.h"
#include "exec_flags.h"
#include "print.h"

#include <string.h>

/* A list of words with '|' or ',' between; anything else is a form of a value. */
static bool is_choice(const char *value)
{
    return strpbrk(value, "|") && !strpbrk(value, "[=:<") && !strstr(value, "NAME");
}

static void words_print(const char *value, FILE *to)
{
    for (; *value; value++) (void)fputc(*value == '|' ? ' ' : *value, to);
}

static void verbs_print(FILE *to)
{
    for (uint32_t i = 0; i < cli_verb_count; i++) (void)fprintf(to, "%s ", cli_verbs[i].name);
    (void)fprintf(to, "exec");
}

/* ---- bash ---- */

static void bash_print(FILE *to)
{
    arg_info o;
    (void)fprintf(
        to,
        "_sinter()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}"
        " words=\n    [ \"${COMP_WORDS[0]##*/}\" = trtexec ] && verb=exec\n"
        "    if [ \"$COMP_CWORD\" = 1 ] && [ \"${COMP_WORDS[0]##*/}\" != trtexec ]; then\n        words='");
    verbs_print(to);
    (void)fprintf(to, "'\n    else\n        case $prev in\n");
    for (uint32_t i = 0; args_info(i, &o); i++) {
        if (!is_choice(o.value)) continue;
        (void)fprintf(to, "        --%s) words='", o.name);
        words_print(o.value, to);
        (void)fprintf(to, "' ;;\n");
    }
    (void)fprintf(to,
                  "        esac\n        if [ -z \"$words\" ] && [[ $cur == -* ]]; then\n            case $verb in\n");
    for (uint32_t v = 0; v < cli_verb_count; v++) {
        (void)fprintf(to, "            %s) words='", cli_verbs[v].name);
        for (uint32_t i = 0; args_info(i, &o); i++)
            if (o.verbs & cli_verbs[v].bit) (void)fprintf(to, "--%s ", o.name);
        (void)fprintf(to, "--help' ;;\n");
    }
    (void)fprintf(to, "            exec) words='");
    for (uint32_t i = 0; i < EXEC_FLAGS; i++)
        if (exec_flags[i].effect != EXEC_REFUSED)
            (void)fprintf(to, "--%s%s ", exec_flags[i].name, *exec_flags[i].value ? "=" : "");
    (void)fprintf(to, "'\n                compopt -o nospace ;;\n            esac\n        fi\n    fi\n"
                      "    if [ -n \"$words\" ]; then mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                      "    else mapfile -t COMPREPLY < <(compgen -f -- \"${cur#=}\"); fi\n}\n"
                      "complete -o filenames -F _sinter sinter trtexec\n");
}

/* ---- zsh and fish ---- */

/* Inside single quotes, with what zsh's _arguments gives a meaning escaped. */
static void quoted(const char *text, bool is_zsh, FILE *to)
{
    for (; *text; text++) {
        if (*text == '\'') (void)fputs(is_zsh ? "'\\''" : "\\'", to);
        else if (*text == '\\' || (is_zsh && strchr("[]:", *text))) (void)fprintf(to, "\\%c", *text);
        else (void)fputc(*text, to);
    }
}

static void zsh_option(const char *name, const char *value, const char *help, char between, FILE *to)
{
    (void)fprintf(to, " \\\n            '*--%s%s[", name, *value ? between == '=' ? "=-" : "" : "");
    quoted(help, true, to);
    (void)fprintf(to, "]");
    if (*value) {
        (void)fprintf(to, ":value:");
        if (is_choice(value)) (void)fprintf(to, "("), words_print(value, to), (void)fprintf(to, ")");
        else (void)fprintf(to, "_files");
    }
    (void)fprintf(to, "'");
}

static void zsh_print(FILE *to)
{
    arg_info o;
    (void)fprintf(to, "#compdef sinter trtexec\n_sinter()\n{\n    local verb=$words[2]\n"
                      "    [[ ${words[1]:t} == trtexec ]] && verb=exec\n"
                      "    if (( CURRENT == 2 )) && [[ ${words[1]:t} != trtexec ]]; then\n        compadd ");
    verbs_print(to);
    (void)fprintf(to, "\n        return\n    fi\n    case $verb in\n");
    for (uint32_t v = 0; v < cli_verb_count; v++) {
        (void)fprintf(to, "        %s) _arguments", cli_verbs[v].name);
        for (uint32_t i = 0; args_info(i, &o); i++)
            if (o.verbs & cli_verbs[v].bit) zsh_option(o.name, o.value, o.help, ' ', to);
        (void)fprintf(to, " \\\n            '*:file:_files' ;;\n");
    }
    (void)fprintf(to, "        exec) _arguments");
    for (uint32_t i = 0; i < EXEC_FLAGS; i++)
        if (exec_flags[i].effect != EXEC_REFUSED)
            zsh_option(exec_flags[i].name, exec_flags[i].value, exec_flags[i].text, '=', to);
    (void)fprintf(to, " ;;\n    esac\n}\ncompdef _sinter sinter trtexec\n");
}

static void fish_option(const char *condition, const char *name, const char *value, const char *help, FILE *to)
{
    (void)fprintf(to, "complete -c sinter -n '__fish_seen_subcommand_from %s' -l %s%s", condition, name,
                  *value ? " -r" : "");
    if (is_choice(value)) (void)fprintf(to, " -a '"), words_print(value, to), (void)fprintf(to, "'");
    (void)fprintf(to, " -d '");
    quoted(help, false, to);
    (void)fprintf(to, "'\n");
}

static void fish_print(FILE *to)
{
    arg_info o;
    for (uint32_t v = 0; v < cli_verb_count; v++)
        (void)fprintf(to, "complete -c sinter -n __fish_use_subcommand -a %s\n", cli_verbs[v].name);
    (void)fprintf(to, "complete -c sinter -n __fish_use_subcommand -a exec\ncomplete -c trtexec -w 'sinter exec'\n");
    for (uint32_t v = 0; v < cli_verb_count; v++)
        for (uint32_t i = 0; args_info(i, &o); i++)
            if (o.verbs & cli_verbs[v].bit) fish_option(cli_verbs[v].name, o.name, o.value, o.help, to);
    for (uint32_t i = 0; i < EXEC_FLAGS; i++)
        if (exec_flags[i].effect != EXEC_REFUSED)
            fish_option("exec", exec_flags[i].name, exec_flags[i].value, exec_flags[i].text, to);
}

int verb_completion(const args *a)
{
    const char *shell = a->file.at[0];
    if (!strcmp(shell, "bash")) bash_print(stdout);
    else if (!strcmp(shell, "zsh")) zsh_print(stdout);
    else if (!strcmp(shell, "fish")) fish_print(stdout);
    else {
        (void)cli_fail("completion: '%s', expected bash, zsh or fish", shell);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* ---- the manual page ---- */

/* A line that begins with '.' or ''' would be a command. */
static void roff(const char *text, FILE *to)
{
    bool is_first = true;
    for (; *text; text++) {
        if (is_first && (*text == '.' || *text == '\'')) (void)fputs("\\&", to);
        is_first = *text == '\n';
        if (*text == '\\') (void)fputs("\\e", to);
        else if (*text == '-') (void)fputs("\\-", to);
        else (void)fputc(*text, to);
    }
}

static void roff_option(const char *name, const char *value, char between, const char *help, FILE *to)
{
    (void)fprintf(to, ".TP\n\\fB\\-\\-");
    roff(name, to);
    (void)fprintf(to, "\\fR");
    if (*value) (void)fputc(between, to), (void)fprintf(to, "\\fI"), roff(value, to), (void)fprintf(to, "\\fR");
    (void)fputc('\n', to);
    roff(help, to);
    (void)fputc('\n', to);
}

int verb_man(const args *a)
{
    FILE *to = stdout;
    arg_info o;
    (void)a;
    (void)fprintf(
        to,
        ".TH SINTER 1 \"\" \"sinter %s\"\n.ad l\n.SH NAME\nsinter \\- optimises and runs ONNX models\n.SH SYNOPSIS\n",
        sinter_version());
    for (uint32_t v = 0; v < cli_verb_count; v++) {
        (void)fprintf(to, ".B sinter %s\n", cli_verbs[v].name);
        roff(*cli_verbs[v].usage ? cli_verbs[v].usage : "[options]", to);
        (void)fprintf(to, "\n.br\n");
    }
    (void)fprintf(to, ".B sinter exec\nflags\n.SH VERBS\n");
    for (uint32_t v = 0; v < cli_verb_count; v++) {
        (void)fprintf(to, ".SS %s\n", cli_verbs[v].name);
        roff(cli_verbs[v].about, to);
        (void)fputc('\n', to);
        for (uint32_t i = 0; args_info(i, &o); i++)
            if (o.verbs & cli_verbs[v].bit) roff_option(o.name, o.value, ' ', o.help, to);
    }
    (void)fprintf(to,
                  ".SS exec\nThe command line of TensorRT's trtexec; so does the command that is called trtexec.\n");
    for (uint32_t i = 0; i < EXEC_FLAGS; i++)
        roff_option(exec_flags[i].name, exec_flags[i].value, '=', exec_flags[i].text, to);
    (void)fprintf(to, ".SH ENVIRONMENT\n");
#define SINTER_X(name, text) (void)fprintf(to, ".TP\n.B %s\n", #name), roff(text, to), (void)fputc('\n', to);
    SINTER_VARIABLES(SINTER_X)
#undef SINTER_X
    (void)fprintf(to, ".SH EXIT STATUS\n0: done; 1: it failed; 2: the command line is wrong.\n");
    return STATUS_OK;
}
