/* The decision map: access pattern down, size across, each cell the ratio of the round trips. */
#include "kernels/zcbench.h"
#include "kernels/zcbench_svg.h"

#define NAME_WIDTH  190
#define CELL_HEIGHT 22
#define COLUMNS_MAX 16

static const struct {
    const char *name;
    enum case_id id;
    double density;
} rows[MAP_ROWS] = {
    {"read once", CASE_READ, 1},
    {"write once", CASE_WRITE, 1},
    {"change every word", CASE_MODIFY, 1},
    {"read 4 times", CASE_PASSES, 4},
    {"read 16 times", CASE_PASSES, 16},
    {"stencil", CASE_STENCIL, 1},
    {"16 K random look-ups", CASE_LOOKUP, 16384},
    {"1 M random look-ups", CASE_LOOKUP, MIB},
    {"filter, 64 K samples", CASE_FIR, 1},
    {"colour map, 1 M pixels", CASE_PIXEL, 1},
};

static const struct cell *cell_find(const struct bench *b, unsigned row, size_t bytes)
{
    for (unsigned i = 0; i < b->cell_count; i++) {
        const struct cell *c = &b->cells[i];
        if (c->id == rows[row].id && c->density == rows[row].density && c->bytes == bytes &&
            c->trip[SIDE_MAPPED].samples)
            return c;
    }
    return NULL;
}

/* Orange: zero-copy, blue: explicit; pale: by less than the rule's 10 %. */
static const char *colour_of(double ratio)
{
    return ratio <= 1 / RULE ? "#f4a460" : ratio <= RULE ? "#fbe3cd" : ratio <= 3 ? "#a6cbe3" : "#5b9fcb";
}

void map_draw(const struct bench *b, FILE *to, double left, double top, double width)
{
    size_t sizes[COLUMNS_MAX];
    unsigned columns = 0;
    char text[32];
    for (size_t bytes = 256; bytes <= 1024 * MIB && columns < COLUMNS_MAX; bytes *= 4) {
        bool any = false;
        for (unsigned row = 0; row < MAP_ROWS; row++) any |= cell_find(b, row, bytes) != NULL;
        if (any) sizes[columns++] = bytes;
    }
    if (!columns) return;
    double cell_width = (width - NAME_WIDTH) / columns, first = left + NAME_WIDTH;
    svg_text(to, left + width / 2, top, "middle", 14, "#222222",
             "Zero-copy's round trip as a multiple of the faster explicit copy's");
    svg_text(to, left + width / 2, top + 17, "middle", 11, "#444444",
             "orange: take zero-copy (pale: within 10 %), blue: copy");
    for (unsigned column = 0; column < columns; column++)
        svg_text(to, first + (column + 0.5) * cell_width, top + 38, "middle", 10, "#444444",
                 format_bytes(sizes[column], text, sizeof text));
    for (unsigned row = 0; row < MAP_ROWS; row++) {
        double y = top + 44 + row * CELL_HEIGHT;
        svg_text(to, first - 8, y + 15, "end", 11, "#222222", rows[row].name);
        for (unsigned column = 0; column < columns; column++) {
            const struct cell *c = cell_find(b, row, sizes[column]);
            if (!c) continue;
            double ratio = c->trip[cell_best_zero(c)].median / c->trip[cell_best_copy(c)].median;
            snprintf(text, sizeof text, "%.*fx", ratio < 10 ? 2 : 0, ratio);
            svg_bar(to, first + column * cell_width, y, cell_width, CELL_HEIGHT, colour_of(ratio), rows[row].name);
            svg_text(to, first + (column + 0.5) * cell_width, y + 15, "middle", 11, "#222222", text);
        }
    }
}
