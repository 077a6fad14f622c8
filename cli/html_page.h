/* SPDX-License-Identifier: Apache-2.0 */
/* html_page.h - one page of HTML that needs nothing else: style and script are inside. */
#ifndef CLI_HTML_PAGE_H
#define CLI_HTML_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A file for a page. A file that is there is replaced where it is a page, too. NULL: reported. */
FILE *html_open(const char *path);
/* The head and the title; the script and the end. */
void html_begin(FILE *to, const char *title);
void html_end(FILE *to);
bool html_close(FILE *to, const char *path); /* false: reported */
/* Text with the characters that HTML gives a meaning escaped. */
void html_text(FILE *to, const char *text);
/* The bytes of the first `most` characters of a text. */
uint32_t html_cut(const char *text, uint32_t most);

#endif
