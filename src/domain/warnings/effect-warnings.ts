import { argumentsOf } from '../config/input-schema.ts';
import { annotationsOf, type Tool } from '../config/tool.ts';
import { foldedHeader } from '../http/parameter-names.ts';
import { type ForeignPath, foreignPath, parseDotPath } from '../json/dot-path.ts';
import { didYouMean, type Guesses } from '../problems/did-you-mean.ts';

type Remark = { path: string; message: string };

/** Warnings about hints that the request contradicts: clients decide by them what to repeat and what to ask about. */
export function hintWarnings(tool: Tool, at: string): Remark[] {
  const { method } = tool;
  const hints = annotationsOf(tool);
  const remarks: Remark[] = [];
  const warn = (hint: string, message: string) => remarks.push({ path: `${at}.annotations.${hint}`, message });
  if (hints.readOnlyHint && hints.destructiveHint) {
    warn('destructiveHint', 'contradicts readOnlyHint; clients then ignore it, so say false to one of the two');
  } else if (hints.readOnlyHint && (method === 'DELETE' || method === 'PUT' || method === 'PATCH')) {
    warn('readOnlyHint', `calls ${method} a reading request, so clients send it without asking the person`);
  }
  if (method === 'GET' && (hints.destructiveHint || !hints.readOnlyHint)) {
    const hint = hints.destructiveHint ? 'destructiveHint' : 'readOnlyHint';
    warn(
      hint,
      'says that this GET may change something; clients and proxies may send a GET again, so use another method where the API has one for this, or correct the hint',
    );
  }
  if (
    (method === 'POST' || method === 'PATCH') &&
    hints.idempotentHint &&
    !hints.readOnlyHint &&
    !hasIdempotencyKey(tool)
  ) {
    warn(
      'idempotentHint',
      `says that this ${method} may be repeated; without an Idempotency-Key, in headers or as an argument, make sure that the API does nothing twice`,
    );
  }
  return remarks;
}

const key = /^(x-)?(idempotency|idempotent|request|client-request|client-token)(-key|-id)?$/;

function hasIdempotencyKey({ headers, input_schema }: Tool): boolean {
  const names = argumentsOf(input_schema).flatMap(({ name, wire }) => [name, wire.wire_name ?? name]);
  return [...Object.keys(headers), ...names].some((name) => key.test(foldedHeader(name)));
}

/** Warnings about `response_fields` that leave out what `output_schema` describes, or name what it does not have. */
export function answerWarnings(tool: Tool, at: string, guesses: Guesses): Remark[] {
  const { response_fields: fields, output_schema: schema } = tool;
  if (!fields || !schema || typeof schema.properties !== 'object' || schema.properties === null) return [];
  const known = Object.keys(schema.properties);
  const isOpen = schema.additionalProperties !== false && known.length === 0;
  if (isOpen) return [];
  const remarks: Remark[] = [];
  for (const [index, field] of fields.entries()) {
    const first = parseDotPath(field)[0] ?? '';
    if (known.some((name) => name === first || `${field}.`.startsWith(`${name}.`))) continue;
    const path = `${at}.response_fields[${index}]`;
    remarks.push({
      path,
      message: `output_schema has no property ${first}, so this matches nothing that it describes${didYouMean(first, known, guesses)}`,
    });
  }
  const kept = new Set(fields.map((field) => parseDotPath(field)[0]));
  const isKept = (name: string) => kept.has(name) || fields.some((field) => `${field}.`.startsWith(`${name}.`));
  const required = Array.isArray(schema.required) ? schema.required : [];
  const lost = required.filter((name): name is string => typeof name === 'string' && !isKept(name));
  if (lost.length > 0) {
    const names = lost.slice(0, 3).join(', ');
    const message = `leave out ${names}, which output_schema requires, so every answer would be refused; keep it, or take it out of required`;
    remarks.push({ path: `${at}.response_fields`, message });
  }
  return remarks;
}

/** Warnings about paths that are written in another notation, which find nothing. */
export function pathWarnings({ response_transform, response_fields = [] }: Tool, at: string): Remark[] {
  const transform = foreignPath(response_transform);
  const ofFields = response_fields.flatMap((field, index): Remark[] => {
    const foreign = foreignPath(field);
    if (!foreign) return [];
    const { names } = foreign;
    const instead =
      names.length === 0
        ? 'leave response_fields out to keep everything'
        : `write ${quoted(names)}, which is kept of every item of a list`;
    return [{ path: `${at}.response_fields[${index}]`, message: `${joinedByDots}; ${instead}` }];
  });
  if (!transform) return ofFields;
  return [{ path: `${at}.response_transform`, message: betterTransform(transform) }, ...ofFields];
}

const joinedByDots =
  'a path is names and numbers of items joined by dots, and a backslash takes the character behind it as it is';

function betterTransform({ names, all }: ForeignPath): string {
  if (all === undefined) return `${joinedByDots}; write ${quoted(names)}`;
  const fields =
    names.length > all ? `, and response_fields: [${quoted(names.slice(all))}] for fields of each item` : '';
  return `${joinedByDots}, and leads to one value; write ${quoted(names.slice(0, all))}${fields}`;
}

function quoted(names: readonly string[]): string {
  return JSON.stringify(names.length === 0 ? '.' : names.join('.'));
}

/** Warnings about text in braces in header values, which is sent as it stands. `at` is the path of the headers. */
export function bracesInHeaders(headers: Readonly<Record<string, string>> | undefined, at: string): Remark[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) => {
    const found = /(?<![{\w$])[$]?\{([A-Za-z_]\w*)\}(?!\})/.exec(value);
    if (!found) return [];
    return [
      {
        path: `${at}.${name}`,
        message: `\`${found[0]}\` is sent as it stands; write {{${found[1]}}} for a variable or a secret`,
      },
    ];
  });
}
