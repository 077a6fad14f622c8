/* SPDX-License-Identifier: Apache-2.0 */
/* html_page.c - what the pages of `sinter report` and `sinter compare` share. */
#include "html_page.h"

#include "print.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char style[] =
    "body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 "
    "1em;color:#1c2330;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #d5dbe5}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2em .6em;border-bottom:1px solid #e6eaf1;"
    "vertical-align:top;overflow-wrap:anywhere}th{cursor:pointer;background:#f3f5f9;position:sticky;top:0}td.n,th.n{"
    "text-align:right;"
    "font-variant-numeric:tabular-nums;white-space:nowrap}td.p{font-family:ui-monospace,monospace;font-size:11px;"
    "color:#56617a;word-break:break-word}.cards{display:flex;flex-wrap:wrap;gap:.8em}.card{border:1px solid #d5dbe5;"
    "border-radius:8px;padding:.5em 1em}.card b{display:block;font-size:1.3em}.scroll{overflow:auto;max-height:600px;"
    "border:1px solid #e6eaf1;padding:8px}svg text{font:12px system-ui,sans-serif;fill:#1c2330}svg "
    ".small{font-size:10px;"
    "fill:#56617a}svg.plot{width:100%}.box{fill:#2f6fde;stroke:#2f6fde}.paper{fill:#fff}.edge{fill:none;stroke:#9aa6bd}"
    ".frame{fill:none;"
    "stroke:#d5dbe5}.block{fill:#2f6fde;fill-opacity:.25;stroke:#2f6fde;stroke-width:.5}.live{fill:none;stroke:#d2452f;"
    "stroke-width:1.5}.bar{fill:#2f6fde}.meter{display:inline-block;height:8px;background:#2f6fde;border-radius:2px}"
    ".bad{color:#d2452f}.w{white-space:nowrap}.wrong{fill:#d2452f}";

/* Sorts a table by the column whose head is clicked. */
static const char script[] = "document.querySelectorAll('th').forEach(function(h){h.onclick=function(){var "
                             "t=h.closest('table'),i=[].indexOf.call("
                             "h.parentNode.children,h),b=t.tBodies[0],r=[].slice.call(b.rows),n=h.className=='n',d=h."
                             "dataset.d=h.dataset.d=='1'?-1:1;"
                             "r.sort(function(x,y){var a=x.cells[i].textContent,c=y.cells[i].textContent;return "
                             "d*(n?parseFloat(c)-parseFloat(a):"
                             "a.localeCompare(c))});r.forEach(function(x){b.appendChild(x)})}})";

FILE *html_open(const char *path)
{
    static const char begin[] = "<!DOCTYPE html>";
    char first[sizeof begin] = { 0 };
    struct stat st;
    /* A pipe has nothing to look at: reading from it would wait for ever. */
    FILE *old = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rbe") : NULL;
    const size_t got = old ? fread(first, 1, sizeof begin - 1, old) : 0;
    if (old) (void)fclose(old);
    if (got && strcmp(first, begin) != 0) {
        (void)cli_fail("'%s' is there, and is no page of HTML", path);
        return NULL;
    }
    FILE *to = fopen(path, "we");
    if (!to) (void)cli_fail("cannot write '%s': %s", path, strerror(errno));
    return to;
}

void html_begin(FILE *to, const char *title)
{
    (void)fprintf(to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>sinter: ");
    html_text(to, title);
    (void)fprintf(to, "</title><style>%s</style></head><body>\n<h1>", style);
    html_text(to, title);
    (void)fprintf(to, "</h1>\n");
}

void html_end(FILE *to)
{
    (void)fprintf(to, "<script>%s</script>\n</body></html>\n", script);
}

bool html_close(FILE *to, const char *path)
{
    const bool had_error = ferror(to) != 0;
    return (fclose(to) == 0 && !had_error) || cli_fail("cannot write all of '%s'", path) == 0;
}

/* Bytes of the UTF-8 character at `text`; 0: they are none. */
static uint32_t utf8_size(const char *text)
{
    const unsigned char c = (unsigned char)*text;
    const uint32_t size = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    for (uint32_t i = 1; i < size; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80) return 0;
    return size;
}

/* Marks that turn the direction of the text behind them: U+202A to U+202E, U+2066 to U+2069. */
static bool turns_text(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    return c[0] == 0xE2 &&
           ((c[1] == 0x80 && c[2] >= 0xAA && c[2] <= 0xAE) || (c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9));
}

uint32_t html_cut(const char *text, uint32_t most)
{
    uint32_t size = 0, n = 0;
    for (; size < most && text[n]; size++) n += utf8_size(text + n) ? utf8_size(text + n) : 1;
    return n;
}

void html_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        const uint32_t size = utf8_size(text);
        if (size > 1) {
            if (turns_text(text)) (void)fputs("&#xfffd;", to);
            else (void)fwrite(text, 1, size, to);
            text += size - 1;
            continue;
        }
        const unsigned char c = (unsigned char)*text;
        if (c == '<') (void)fputs("&lt;", to);
        else if (c == '>') (void)fputs("&gt;", to);
        else if (c == '&') (void)fputs("&amp;", to);
        else if (c == '"') (void)fputs("&quot;", to);
        else if (c == '\'') (void)fputs("&#39;", to);
        else if (size && (c >= 0x20 || c == '\n' || c == '\t')) (void)fputc(c, to);
        else (void)fprintf(to, "&#xfffd;"); /* HTML has no such character, or it is no UTF-8 */
    }
}
