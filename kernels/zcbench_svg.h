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
    unsigned legends;
};

void svg_begin(FILE *to, double width, double height);
void svg_end(FILE *to);
void svg_text(FILE *to, double x, double y, const char *anchor, int size, const char *colour, const char *text);
void svg_bar(FILE *to, double x, double y, double width, double height, const char *colour, const char *tip);

void chart_frame(const struct chart *chart);
/* Points whose y is not positive are left out. */
void chart_line(struct chart *chart, const char *name, const char *colour, bool dashed, const double *x,
                const double *y, unsigned count);
/* A vertical line with a word beside it; nothing if x is outside the chart. */
void chart_mark(const struct chart *chart, double x, const char *word);

#endif
