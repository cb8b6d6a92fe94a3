/* The page is cli/report.html, with the JSON report in the place of its mark. */
#include <string.h>
#include "cli/load.h"

__asm__(".section .rodata\n"
        "html_page:\n"
        ".incbin \"cli/report.html\"\n"
        "html_page_end:\n"
        ".byte 0\n"
        ".text\n");
extern const char html_page[], html_page_end[];

void report_write_html(struct emitter *e, const struct report *report)
{
    static const char mark[] = "@REPORT@";
    const char *at = strstr(html_page, mark);
    emitter_bytes(e, html_page, (size_t)(at - html_page));
    e->for_html = true;
    report_write_json(e, report);
    at += sizeof mark - 1;
    emitter_bytes(e, at, (size_t)(html_page_end - at));
}
