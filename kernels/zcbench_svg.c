#include "kernels/zcbench_svg.h"
#include <math.h>
#include <string.h>
#include "kernels/zcbench.h"

void svg_begin(FILE *to, double width, double height)
{
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            width, height, width, height);
}

void svg_end(FILE *to) { fputs("</svg>\n", to); }

static void escaped(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", to);
        else if (*text == '&')
            fputs("&amp;", to);
        else
            fputc(*text, to);
    }
}

void svg_text(FILE *to, double x, double y, const char *anchor, int size, const char *colour, const char *text)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">", x, y, anchor, size,
            colour);
    escaped(to, text);
    fputs("</text>\n", to);
}

void svg_line(FILE *to, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style);
}

void svg_bar(FILE *to, double x, double y, double width, double height, const char *colour, const char *tip)
{
    fprintf(to,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"#ffffff\" "
            "stroke-width=\"0.5\"><title>",
            x, y, width < 0.5 ? 0.5 : width, height, colour);
    escaped(to, tip);
    fputs("</title></rect>\n", to);
}

static double place(double value, double min, double max) { return (log(value) - log(min)) / (log(max) - log(min)); }
static double at_x(const struct chart *c, double x) { return c->left + c->width * place(x, c->x_min, c->x_max); }
static double at_y(const struct chart *c, double y) { return c->top + c->height * (1 - place(y, c->y_min, c->y_max)); }

static void tick_text(enum axis axis, double value, char *text, size_t size)
{
    if (axis == AXIS_BYTES)
        format_bytes((size_t)value, text, size);
    else if (axis == AXIS_FRACTION)
        snprintf(text, size, "%g", value);
    else if (value >= 1e9)
        snprintf(text, size, "%g s", value / 1e9);
    else if (value >= 1e6)
        snprintf(text, size, "%g ms", value / 1e6);
    else
        snprintf(text, size, "%g us", value / 1e3);
}

void chart_frame(const struct chart *c)
{
    static const char grid[] = "stroke=\"#dddddd\"";
    char text[32];
    double factor = c->x_axis == AXIS_BYTES ? 16 : 10;
    svg_text(c->to, c->left + c->width / 2, c->top - 28, "middle", 14, "#222222", c->title);
    svg_text(c->to, c->left + c->width / 2, c->top + c->height + 34, "middle", 11, "#444444", c->x_title);
    double first = c->x_axis == AXIS_BYTES ? exp2(ceil(log2(c->x_min))) : pow(10, ceil(log10(c->x_min) - 1e-6));
    for (double x = first; x <= c->x_max * 1.001; x *= factor) {
        svg_line(c->to, at_x(c, x), c->top, at_x(c, x), c->top + c->height, grid);
        tick_text(c->x_axis, x, text, sizeof text);
        svg_text(c->to, at_x(c, x), c->top + c->height + 16, "middle", 10, "#444444", text);
    }
    for (double y = pow(10, ceil(log10(c->y_min) - 1e-6)); y <= c->y_max * 1.001; y *= 10) {
        svg_line(c->to, c->left, at_y(c, y), c->left + c->width, at_y(c, y), grid);
        tick_text(AXIS_NS, y, text, sizeof text);
        svg_text(c->to, c->left - 6, at_y(c, y) + 3, "end", 10, "#444444", text);
    }
    fprintf(c->to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#888888\"/>\n",
            c->left, c->top, c->width, c->height);
}

void chart_line(struct chart *c, const char *name, const char *colour, bool dashed, const double *x, const double *y,
                unsigned count)
{
    const char *dash = dashed ? " stroke-dasharray=\"5 3\"" : "";
    char style[96];
    fprintf(c->to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", colour, dash);
    for (unsigned i = 0; i < count; i++)
        if (y[i] > 0) fprintf(c->to, "%.1f,%.1f ", at_x(c, x[i]), at_y(c, y[i]));
    fputs("\"/>\n", c->to);
    for (unsigned i = 0; i < count; i++)
        if (y[i] > 0)
            fprintf(c->to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n", at_x(c, x[i]), at_y(c, y[i]),
                    colour);
    double at = c->left + c->legend_x, legend_y = c->top - 9;
    c->legend_x += 38 + 5.8 * (double)strlen(name);
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"2\"%s", colour, dash);
    svg_line(c->to, at, legend_y - 4, at + 20, legend_y - 4, style);
    svg_text(c->to, at + 24, legend_y, "start", 11, "#222222", name);
}

void chart_mark(struct chart *c, double x, const char *words)
{
    if (!(x > c->x_min && x < c->x_max)) return;
    bool right = at_x(c, x) > c->left + c->width * 0.4;
    svg_line(c->to, at_x(c, x), c->top, at_x(c, x), c->top + c->height, "stroke=\"#222222\" stroke-dasharray=\"2 3\"");
    double words_x = at_x(c, x) + (right ? -4 : 4), words_y = c->top + 14 + 14 * c->marks++;
    fputs("<g paint-order=\"stroke\" stroke=\"#ffffff\" stroke-width=\"3\">", c->to); /* legible over other lines */
    svg_text(c->to, words_x, words_y, right ? "end" : "start", 10, "#222222", words);
    fputs("</g>\n", c->to);
}
