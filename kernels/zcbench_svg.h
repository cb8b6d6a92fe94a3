/* A small SVG emitter: charts with logarithmic axes and a timeline. Coordinates are pixels; nothing is kept between
 * calls but what struct chart holds. */
#ifndef ZCBENCH_SVG_H
#define ZCBENCH_SVG_H
#include <stdbool.h>
#include <stdio.h>

enum axis { AXIS_BYTES, AXIS_NS, AXIS_FRACTION };

struct chart {
    FILE *to;
    double left, top, width, height; /* of the plotting area */
    enum axis x_axis;
    double x_min, x_max, y_min, y_max; /* data, all positive */
    const char *title, *x_title;
    double legend_x; /* where the next name of the legend goes, from `left` on */
    unsigned marks;
};

void svg_begin(FILE *to, double width, double height);
void svg_end(FILE *to);
void svg_text(FILE *to, double x, double y, const char *anchor, int size, const char *colour, const char *text);
void svg_line(FILE *to, double x1, double y1, double x2, double y2, const char *style);
void svg_bar(FILE *to, double x, double y, double width, double height, const char *colour, const char *tip);

void chart_frame(const struct chart *chart);
/* Points whose y is not positive are left out. */
void chart_line(struct chart *chart, const char *name, const char *colour, bool dashed, const double *x,
                const double *y, unsigned count);
/* A vertical line with words beside it, those of the second line below those of the first; nothing if x is outside. */
void chart_mark(struct chart *chart, double x, const char *words);

/* map.c: the decision map, MAP_HEIGHT high. */
struct bench;
#define MAP_ROWS   10
#define MAP_HEIGHT 290
void map_draw(const struct bench *bench, FILE *to, double left, double top, double width);

#endif
