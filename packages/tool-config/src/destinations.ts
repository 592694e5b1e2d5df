import type { Problem } from '@toolhost/errors/errors';
import { describeValue } from '@toolhost/errors/problems';
import { getHeader, hasOptionalBody, parseMediaType } from './http/headers.ts';
import { compareJsonNames, compareParameterNames, type NameComparison } from './http/parameter-names.ts';
import { createTokenPattern, parseTemplateParts, type TemplatePart } from './http/url-template.ts';
import type { Argument, WireStyle } from './input-schema.ts';

export const bodyEncodings = ['json', 'form', 'multipart'] as const;
export type Encoding = (typeof bodyEncodings)[number];

/** How the body of a tool is built: in an encoding, from one argument, or from a template. */
export type BodyKind = Encoding | 'argument' | 'template';

/** Location that an argument is sent in. `part` is a part of a body template, or the name or type of a file. */
export type Destination = 'url' | 'query' | 'header' | 'cookie' | 'body' | 'part';

/** Returns true if the `body` of a tool names an encoding; otherwise it names an argument. */
export function isEncoding(body: string | undefined): body is Encoding {
  return (bodyEncodings as readonly (string | undefined)[]).includes(body);
}

/** Returns the body encoding that a static Content-Type implies, or undefined if it implies none. */
export function getImpliedEncoding(contentType: string): Encoding | undefined {
  const type = parseMediaType(contentType);
  if (type === 'application/x-www-form-urlencoded') return 'form';
  if (type.startsWith('multipart/')) return 'multipart';
  return /[/+]json$/.test(type) ? 'json' : undefined;
}

/** Fields of a tool that determine its body. */
export type BodyFields = {
  method: string;
  body?: string | undefined;
  body_template?: unknown;
  headers: { readonly [name: string]: string };
};

/** Returns the static Content-Type of a tool. */
export function getContentType({ headers }: Pick<BodyFields, 'headers'>): string | undefined {
  return getHeader(headers, 'content-type');
}

export function getBodyKind(tool: BodyFields): BodyKind {
  if (tool.body_template !== undefined) return 'template';
  if (tool.body !== undefined) return isEncoding(tool.body) ? tool.body : 'argument';
  const contentType = getContentType(tool);
  return (contentType === undefined ? undefined : getImpliedEncoding(contentType)) ?? 'json';
}

/**
 * Returns the destination of each argument of a tool. `inUrl` and `inBody` are the arguments of its templates. An
 * argument of a template is not sent a second time unless its `in` requests it.
 */
export function getDestinations(
  tool: BodyFields,
  declared: readonly Argument[],
  { inUrl, inBody }: { inUrl: readonly string[]; inBody: readonly string[] },
): Map<string, Destination> {
  const kind = getBodyKind(tool);
  const defaultDestination =
    hasOptionalBody(tool.method) || kind === 'argument' || kind === 'template' ? 'query' : 'body';
  const partNames = new Set([...inBody, ...getFileDetailArguments(declared)]);
  const getDestination = ({ name, location }: Argument): Destination => {
    if (inUrl.includes(name)) return 'url';
    if (kind === 'argument' && name === tool.body) return 'body';
    if (partNames.has(name) && (location === undefined || (kind === 'template' && location === 'body'))) return 'part';
    return location === undefined || location === 'path' ? defaultDestination : location;
  };
  return new Map(declared.map((argument) => [argument.name, getDestination(argument)]));
}

/** Returns the arguments that supply the file name or the media type of another argument. */
function getFileDetailArguments(declared: readonly Argument[]): string[] {
  return declared.flatMap(({ wire }) =>
    [wire.file_name, wire.media_type].flatMap((text) => (typeof text === 'object' ? [text.argument] : [])),
  );
}

/** Styles that send a nested value as several parameters, such as `a[b]`. */
const nestedStyles = ['brackets', 'indices', 'deep'];

/** Argument of a caller or a constant, with its upstream name. */
type NamedArgument = { name: string; wireName: string; style: WireStyle | undefined };

/** A caller's argument, and the upstream name of the constant that a receiver could confuse it with. */
type ConfusableArgument = NamedArgument & { constant: string };

/**
 * Returns a function that finds the arguments that a receiver could read as one of the constants. Such arguments are
 * not sent, because a constant, or an argument fixed by a view, must not depend on the caller. The names are compared
 * only once, for any number of calls. In JSON, receivers ignore at most the case; elsewhere a name has many spellings.
 */
export function createConstantMatcher(
  callerArguments: readonly NamedArgument[],
  kind: BodyKind | 'query',
): (constants: ReadonlySet<string>) => ConfusableArgument[] {
  if (kind === 'argument' || kind === 'template') return () => [];
  let comparison: NameComparison | undefined;
  return (constants) => {
    const fixed = [...callerArguments.keys()].filter((index) => constants.has(callerArguments[index]?.name ?? ''));
    if (fixed.length === 0 || fixed.length === callerArguments.length) return [];
    comparison ??= (kind === 'json' ? compareJsonNames : compareParameterNames)(
      callerArguments.map(({ wireName }) => wireName),
    );
    const constantIndexes = new Map<number, number>();
    for (const constant of fixed)
      for (const index of comparison.getConflicts(constant))
        if (!constantIndexes.has(index)) constantIndexes.set(index, constant);
    const { folded } = comparison;
    return callerArguments.flatMap((argument, index) => {
      const constant = constants.has(argument.name) ? undefined : constantIndexes.get(index);
      if (constant === undefined || containsConstant(argument, folded[index] ?? '', folded[constant] ?? '')) return [];
      return [{ ...argument, constant: callerArguments[constant]?.wireName ?? '' }];
    });
  };
}

/**
 * Returns true if only the properties of an object could have the name of the constant. Callers choose these names, so
 * they are compared on each call instead, and the object is sent.
 */
function containsConstant({ style }: NamedArgument, foldedName: string, constant: string): boolean {
  if (style !== 'repeat' && !nestedStyles.includes(style ?? '')) return false;
  return foldedName !== constant && !foldedName.startsWith(`${constant}[`);
}

export function getWireName({ name, wire }: Argument): string {
  return wire.wire_name ?? name;
}

/** Returns the path of the field that determines an argument's upstream name. */
export function getNamePath({ name, wire }: Argument): string {
  return wire.wire_name === undefined ? `input_schema.${name}` : `input_schema.${name}.wire_name`;
}

/** Returns the problems of argument names that share the query or the body. */
export function findNameConflicts(
  declared: readonly Argument[],
  destinations: ReadonlyMap<string, Destination>,
  kind: BodyKind,
): Problem[] {
  const constants = new Set(declared.filter(({ wire }) => wire.value !== undefined).map(({ name }) => name));
  return (['query', 'body'] as const).flatMap((location) => {
    if (location === 'body' && (kind === 'argument' || kind === 'template')) return [];
    const siblings = declared.filter(({ name }) => destinations.get(name) === location);
    const isExact = siblings.some(({ wire }) => wire.wire_name !== undefined || wire.style !== undefined);
    const problems = isExact ? findDuplicateNames(siblings) : [];
    const reportedPaths = new Set(problems.map(({ path }) => path));
    const named = siblings.map((argument) => ({
      name: argument.name,
      wireName: getWireName(argument),
      style: argument.wire.style,
    }));
    const confusable = createConstantMatcher(named, location === 'query' ? 'query' : kind)(constants);
    for (const { name, wireName, constant } of confusable) {
      const path = getNamePath(declared.find((argument) => argument.name === name) as Argument);
      const message = `${describeValue(wireName)} could be read as ${describeValue(constant)}, which is a constant here, so it would not be sent; remove it, or merge both into one argument`;
      if (!reportedPaths.has(path)) problems.push({ path, message });
    }
    return problems;
  });
}

function findDuplicateNames(siblings: readonly Argument[]): Problem[] {
  const problems: Problem[] = [];
  const argumentsByWireName = new Map<string, string>();
  for (const argument of siblings) {
    const wireName = getWireName(argument);
    const previous = argumentsByWireName.get(wireName);
    if (previous !== undefined) {
      const message = `${describeValue(wireName)} is already sent for the argument ${previous}`;
      problems.push({ path: getNamePath(argument), message });
    }
    argumentsByWireName.set(wireName, argument.name);
    const holder = siblings.find((sibling) => canProduceName(sibling, wireName));
    if (holder) {
      const message = `${describeValue(wireName)} is also the name of a possible property of the argument ${holder.name}; merge both into one argument`;
      problems.push({ path: getNamePath(argument), message });
    }
  }
  return problems;
}

/** Returns true if a nested argument could produce a parameter with the name `wireName`. */
function canProduceName({ name, wire, type }: Argument, wireName: string): boolean {
  if (!nestedStyles.includes(wire.style ?? '') || ['string', 'number', 'integer', 'boolean'].includes(type ?? ''))
    return false;
  return wireName.startsWith(`${wire.wire_name ?? name}[`);
}

/** A JSON body that contains arguments. */
export type BodyTemplate = {
  root: BodyNode;
  /** Arguments that it contains. */
  names: readonly string[];
  /** Number of occurrences of each argument that occurs more than once. */
  repeats: readonly (readonly [name: string, count: number])[];
};

export type BodyNode =
  | { kind: 'literal'; value: unknown }
  | { kind: 'argument'; name: string }
  | { kind: 'text'; parts: readonly TemplatePart[] }
  | { kind: 'array'; items: readonly BodyNode[] }
  | { kind: 'object'; entries: readonly (readonly [name: string, value: BodyNode])[] };

/** Parses the `body_template` of a tool. `declared` are its argument names. */
export function parseBodyTemplate(template: unknown, declared: readonly string[]): BodyTemplate {
  const token = createTokenPattern(declared, 'y');
  const counts = new Map<string, number>();
  const root = parseNode(template, (text) => {
    const parts = parseTemplateParts(text, token, []);
    for (const part of parts) {
      if ('argument' in part) counts.set(part.argument, (counts.get(part.argument) ?? 0) + 1);
    }
    return parts;
  });
  return { root, names: [...counts.keys()], repeats: [...counts].filter(([, count]) => count > 1) };
}

function parseNode(value: unknown, parse: (text: string) => TemplatePart[]): BodyNode {
  if (typeof value === 'string') return toTextNode(value, parse(value));
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return { kind: 'literal', value };
  if (Array.isArray(value)) return { kind: 'array', items: value.map((item) => parseNode(item, parse)) };
  return { kind: 'object', entries: Object.entries(value).map(([name, inner]) => [name, parseNode(inner, parse)]) };
}

function toTextNode(value: string, parts: readonly TemplatePart[]): BodyNode {
  const [firstPart] = parts;
  if (parts.length === 1 && firstPart && 'argument' in firstPart) return { kind: 'argument', name: firstPart.argument };
  return parts.some((part) => !('text' in part)) ? { kind: 'text', parts } : { kind: 'literal', value };
}
