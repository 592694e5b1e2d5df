import type { Problem } from '../../errors.ts';
import { shown } from '../problems/problems.ts';

/**
 * Text that its author expects to be filled, and that would be sent as it stands. Such a tool is stored without a word
 * and then never works, so each of these is a problem.
 */

/** The part of an argument that these rules need. */
export type DeclaredArgument = { name: string; required: boolean; fallback: unknown; wire: { value?: unknown } };

type Fields = { [name: string]: unknown };

/** `{id}`, `{+path}` or `{name=projects/*}`, but not `{{NAME}}`, `{}` or JSON. */
const braces = /(?<!\{)\{([?+/&#;.]?)([A-Za-z_][\w.-]*)(\*|=[^{}]*|:\d+)?\}(?!\})/g;
const angles = /<([A-Za-z_]\w*)>/g;

/** The problems of braces in a URL, which may be relative. */
export function bracesInUrl(url: string, declared: ReadonlySet<string>): string[] {
  const [beforeQuery = '', query = ''] = splitAt(url, '?');
  const [base, path] = baseAndPath(beforeQuery);
  const inHost = [...base.matchAll(braces)].map(
    ([found, , name = '']) =>
      `\`${found}\` cannot stand in a host; declare ${name} in variables and write {{${name}}}, or write the host itself`,
  );
  const inPath = [...path.matchAll(braces), ...path.matchAll(angles)].map((match) => unfilled(match, declared));
  // Some APIs have braces of their own in a query, behind a name: fields=posts{message}.
  const inQuery = [...query.matchAll(braces), ...query.matchAll(angles)]
    .filter(({ index }) => !/[\w)}\]]/.test(query[index - 1] ?? ''))
    .map((match) => unfilled(match, declared));
  return [...new Set([...inHost, ...inPath, ...inQuery])];
}

function unfilled(match: RegExpExecArray, declared: ReadonlySet<string>): string {
  const found = match[0];
  const name = found.startsWith('<') ? String(match[1]) : String(match[2]);
  const declaring = declared.has(name) ? '' : ` and declare ${name} in input_schema`;
  const encoded = encodeURIComponent(found);
  return `\`${found}\` would be sent as it stands; write \`:${name}\`${declaring} for an argument, {{${name}}} for a variable or a secret, or ${encoded} for the characters themselves`;
}

function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function baseAndPath(url: string): [string, string] {
  const base = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/]*/.exec(url)?.[0] ?? '';
  return [base, url.slice(base.length)];
}

/** Arguments that stand in the path and may be left out. */
export function optionalInPath(declared: readonly DeclaredArgument[], inPath: ReadonlySet<string>): Problem[] {
  return declared
    .filter(({ name, required, fallback, wire }) => {
      return inPath.has(name) && !required && fallback === undefined && wire.value === undefined;
    })
    .map(({ name }) => ({
      path: `input_schema.${name}`,
      message: `:${name} stands in the path, which needs it in every call; make the argument required, or give it a default`,
    }));
}

/** Arguments in header values, which are sent as they stand. Paths are names of headers. */
export function argumentsInHeaders(headers: Readonly<Record<string, string>>, declared: readonly string[]): Problem[] {
  if (declared.length === 0) return [];
  const names = new Set(declared);
  return Object.entries(headers).flatMap(([header, value]) => {
    const tokens = [...value.matchAll(/(?<![\w:{])(:([A-Za-z_][\w.-]*\w|[A-Za-z_])|\{([A-Za-z_][\w.-]*)\}(?!\}))/g)];
    const found = tokens.find(([, , colon, brace]) => names.has(String(colon ?? brace)));
    if (!found) return [];
    const message = `\`${found[1]}\` would be sent as it stands, because arguments fill no header values; take this header out and give the argument "in": "header" and "wire_name": ${JSON.stringify(header)}`;
    return [{ path: header, message }];
  });
}

const placeholder = /^\{\{\s*[A-Za-z_]\w*\s*\}\}$/;
const inAName = /\{\{\s*[A-Za-z_]\w*\s*\}\}/;

/** `{{NAME}}` where it is not filled. `properties` are the definitions of the arguments; paths are relative to them. */
export function unfilledPlaceholders(properties: Readonly<Fields>): Problem[] {
  return Object.entries(properties).flatMap(([name, definition]) => {
    if (typeof definition !== 'object' || definition === null) return [];
    const { default: fallback, enum: values, wire_name, file_name, media_type } = definition as Fields;
    const whole: [string, unknown][] = [
      ['default', fallback],
      ['file_name', file_name],
      ['media_type', media_type],
      ...(Array.isArray(values) ? values.map((value, i): [string, unknown] => [`enum[${i}]`, value]) : []),
    ];
    const problems = whole
      .filter(([, text]) => typeof text === 'string' && placeholder.test(text))
      .map(([field, text]) => ({
        path: `${name}.${field}`,
        message: `${shown(text)} is not filled here and would be sent as it stands; a secret or a variable may fill a constant, "value"`,
      }));
    if (typeof wire_name !== 'string' || !inAName.test(wire_name)) return problems;
    return [
      ...problems,
      { path: `${name}.wire_name`, message: 'a variable or a secret never fills a name; write it out' },
    ];
  });
}
