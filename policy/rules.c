#include "rules.h"
#include "text.h"

#include <string.h>

struct parser {
    const char *line_start;
    unsigned line;
    char *error;
    size_t error_capacity;
};

static bool fail(const struct parser *parser, const char *at, const char *what)
{
    struct text text = text_into(parser->error, parser->error_capacity);
    text_add(&text, "line ");
    text_u64(&text, parser->line);
    text_add(&text, ", column ");
    text_u64(&text, (uint64_t)(at - parser->line_start) + 1);
    text_add(&text, ": ");
    text_add(&text, what);
    return false;
}

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* Takes the next word of a rule; its value may be quoted. Empty at the rule's end (newline, semicolon, comment, end of
 * text). */
static bool next_word(const struct parser *parser, struct span *rest, struct span *name, struct span *value)
{
    while (rest->at < rest->end && blank(*rest->at)) rest->at++;
    *name = *value = (struct span){rest->at, rest->at};
    while (name->end < rest->end && !blank(*name->end) && !memchr("\n;#=", *name->end, 4)) name->end++;
    rest->at = name->end;
    *value = (struct span){name->end, name->end};
    if (rest->at == rest->end || *rest->at != '=') return true;

    const char *at = rest->at + 1;
    if (at < rest->end && (*at == '\'' || *at == '"')) {
        char quote = *at++;
        *value = (struct span){at, at};
        while (value->end < rest->end && *value->end != quote && *value->end != '\n') value->end++;
        if (value->end == rest->end || *value->end != quote) return fail(parser, at - 1, "quote without an end");
        rest->at = value->end + 1;
        return true;
    }
    *value = (struct span){at, at};
    while (value->end < rest->end && !blank(*value->end) && !memchr("\n;#", *value->end, 3)) value->end++;
    rest->at = value->end;
    return true;
}

static bool parse_size(struct rule *rule, struct span value)
{
    struct span low = value, high = value;
    for (const char *at = value.at; at + 1 < value.end; at++) {
        if (at[0] != '.' || at[1] != '.') continue;
        low.end = at;
        high.at = at + 2;
        break;
    }
    bool range = high.at != value.at;
    rule->low_bytes = 0;
    rule->high_bytes = UINT64_MAX;
    if (range && span_length(low) + span_length(high) == 0) return false;
    if (span_length(low) && !span_size(low, &rule->low_bytes)) return false;
    if (!range) rule->high_bytes = rule->low_bytes;
    if (range && span_length(high) && !span_size(high, &rule->high_bytes)) return false;
    return span_length(value) > 0 && rule->low_bytes <= rule->high_bytes;
}

static bool parse_word(const struct parser *parser, struct rule *rule, struct span name, struct span value,
                       bool *placed, bool *limited)
{
    if (value.at == name.end) return fail(parser, name.at, "not NAME=VALUE");
    if (span_is(name, "place")) {
        if (span_is(value, "host"))
            rule->place = RULE_HOST;
        else if (span_is(value, "device"))
            rule->place = RULE_DEVICE;
        else if (span_is(value, "auto"))
            rule->place = RULE_AUTO;
        else
            return fail(parser, value.at, "place is host, device or auto");
        *placed = true;
        return true;
    }
    *limited = true;
    if (span_is(name, "size"))
        return parse_size(rule, value) || fail(parser, value.at, "not a size or range (like 4K, 4K..64K, 1M..)");
    if (!span_is(name, "site") && !span_is(name, "kernel"))
        return fail(parser, name.at, "unknown word (site, size, kernel, place)");
    if (value.at == value.end) return fail(parser, value.at, "empty pattern");
    if (span_is(name, "site")) {
        rule->site = value.at;
        rule->site_length = span_length(value);
    } else {
        rule->kernel = value.at;
        rule->kernel_length = span_length(value);
    }
    return true;
}

/* One rule, up to its end; `*found` if there was one. */
static bool parse_rule(const struct parser *parser, struct span *rest, struct rule *rule, bool *found)
{
    bool placed = false, limited = false;
    const char *start = rest->at;
    *rule = (struct rule){.high_bytes = UINT64_MAX, .line = parser->line};
    *found = false;
    for (;;) {
        struct span name, value;
        if (!next_word(parser, rest, &name, &value)) return false;
        if (name.at == name.end && value.at == name.end) break;
        if (!*found) start = name.at;
        *found = true;
        if (!parse_word(parser, rule, name, value, &placed, &limited)) return false;
    }
    if (*found && !placed) return fail(parser, start, "rule without place=");
    if (*found && !limited) return fail(parser, start, "rule without site=, size= or kernel=");
    return true;
}

bool rules_parse(struct rules *rules, const char *text, size_t length, char *error, size_t error_capacity)
{
    struct parser parser = {text, 1, error, error_capacity};
    struct span rest = {text, text + length};
    memset(rules, 0, sizeof *rules);
    while (rest.at < rest.end) {
        struct rule rule;
        bool found;
        if (!parse_rule(&parser, &rest, &rule, &found)) goto failed;
        if (found && rules->count == RULES_MOST) {
            fail(&parser, rest.at, "more than 128 rules");
            goto failed;
        }
        if (found) {
            rules->rule[rules->count++] = rule;
            rules->by_site |= rule.site != NULL;
            rules->by_kernel |= rule.kernel != NULL;
        }
        if (rest.at < rest.end && *rest.at == '#')
            while (rest.at < rest.end && *rest.at != '\n') rest.at++;
        if (rest.at < rest.end && *rest.at == '\n') {
            parser.line++;
            parser.line_start = rest.at + 1;
        }
        if (rest.at < rest.end) rest.at++;
    }
    return true;
failed:
    memset(rules, 0, sizeof *rules);
    return false;
}

static bool glob(const char *pattern, size_t length, const char *subject)
{
    return !pattern || (subject && span_glob((struct span){pattern, pattern + length}, span_of(subject)));
}

const struct rule *rules_match(const struct rules *rules, const char *site, uint64_t bytes, const char *kernel)
{
    for (unsigned i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->rule[i];
        if (bytes < rule->low_bytes || bytes > rule->high_bytes) continue;
        if (glob(rule->site, rule->site_length, site) && glob(rule->kernel, rule->kernel_length, kernel)) return rule;
    }
    return NULL;
}
