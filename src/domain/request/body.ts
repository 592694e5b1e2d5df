import type { BodyTemplate } from '../config/sending/body-template.ts';
import { type BodyKind, encodingOf } from '../config/sending/destinations.ts';
import type { ArrayFormat } from '../http/values.ts';
import { fileContent, fileNameOf, mediaTypeOfArgument } from './files.ts';
import { fillBodyTemplate } from './fill-body-template.ts';
import { addPairs, encodedPairs, type Pairs, pairsOf, refusedArgument, styledText } from './pairs.ts';
import { type Arguments, own, type SentArgument } from './sent-argument.ts';
import type { FormPart, UpstreamBody } from './upstream-request.ts';

/** How the body of a tool is made. */
export type BodyPlan = {
  /** Arguments that become parts of it, or the one that is the body. */
  arguments: readonly SentArgument[];
  kind: BodyKind | 'none';
  template: BodyTemplate | undefined;
  /** Arguments whose style makes a text of their value in JSON. */
  texts: readonly SentArgument[];
  /** The static Content-Type of the tool. */
  contentType: string | undefined;
  arrayFormat: ArrayFormat;
  /** Whether there is a body also when none of its arguments is present. */
  isAlwaysSent: boolean;
};

/** A body, and its Content-Type where the tool does not set it. */
export type Content = { body: UpstreamBody | undefined; contentType?: string };
const noContent: Content = { body: undefined };

/** The body of a call. @throws ToolFailure invalid_arguments, and what `secret` throws */
export function contentOf(plan: BodyPlan, args: Arguments, secret: (name: string) => string): Content {
  const { kind } = plan;
  if (kind === 'none') return noContent;
  if (kind === 'template') {
    const values = { args: withTexts(plan.texts, args), secret };
    return jsonContent(fillBodyTemplate(plan.template as BodyTemplate, values));
  }
  if (kind === 'argument') return argumentContent(plan, args);
  if (!plan.isAlwaysSent && !plan.arguments.some(({ name }) => own(args, name) !== undefined)) return noContent;
  if (kind === 'json') return jsonContent(jsonObject(plan, args));
  return kind === 'form' ? formContent(plan, args) : { body: { fields: multipartFields(plan, args) } };
}

function jsonObject(plan: BodyPlan, args: Arguments): object {
  const values = withTexts(plan.texts, args);
  const entries: [string, unknown][] = [];
  for (const { name, wireName } of plan.arguments) {
    const value = own(values, name);
    if (value !== undefined) entries.push([wireName, value]);
  }
  return Object.fromEntries(entries);
}

/** The arguments with those whose style says so as texts. */
function withTexts(texts: BodyPlan['texts'], args: Arguments): Arguments {
  if (texts.length === 0) return args;
  const styled = texts.map((argument): [string, unknown] => {
    const value = own(args, argument.name);
    return [argument.name, value === undefined || value === null ? value : styledText(argument, value)];
  });
  return { ...args, ...Object.fromEntries(styled.filter(([, value]) => value !== undefined)) };
}

function jsonContent(value: unknown): Content {
  return value === undefined ? noContent : { body: JSON.stringify(value), contentType: 'application/json' };
}

/** One argument is the body: bytes, text, or anything as JSON. */
function argumentContent({ arguments: [argument], contentType }: BodyPlan, args: Arguments): Content {
  const value = argument && own(args, argument.name);
  if (!argument || value === undefined) return noContent;
  const given = mediaTypeOfArgument(argument, args);
  if (argument.isBase64) {
    const { bytes, mediaType } = fileContent(argument, value);
    return { body: bytes, contentType: given ?? mediaType ?? 'application/octet-stream' };
  }
  const declared = contentType ?? given;
  if (typeof value === 'string' && (declared === undefined || encodingOf(declared) !== 'json'))
    return { body: value, contentType: given ?? 'text/plain; charset=utf-8' };
  return { body: JSON.stringify(value), contentType: given ?? 'application/json' };
}

function formContent(plan: BodyPlan, args: Arguments): Content {
  const pairs = pairsOf('a form', plan.arrayFormat);
  for (const argument of plan.arguments) {
    const value = own(args, argument.name);
    if (value !== undefined) addPairs(pairs, argument, value);
  }
  return { body: encodedPairs(pairs).join('&'), contentType: 'application/x-www-form-urlencoded' };
}

function multipartFields(plan: BodyPlan, args: Arguments): FormPart[] {
  const fields: FormPart[] = [];
  const pairs = pairsOf('a form', plan.arrayFormat, false);
  for (const argument of plan.arguments) {
    const value = own(args, argument.name);
    if (value === undefined || value === null) continue;
    if (isPlain(argument)) addPlainFields(fields, pairs, argument, value);
    else if (argument.isBase64) fields.push(...fileFields(plan, argument, value, args));
    else {
      const text = typeof value === 'string' && argument.style !== 'json' ? value : JSON.stringify(value);
      fields.push([argument.wireName, text, partOf(fileNameOf(argument, args), mediaTypeOfArgument(argument, args))]);
    }
  }
  return fields;
}

function isPlain({ isBase64, fileName, mediaType }: SentArgument): boolean {
  return !isBase64 && fileName === undefined && mediaType === undefined;
}

/** `pairs` are those of all arguments, because their limits are those of the whole form. */
function addPlainFields(fields: FormPart[], pairs: Pairs, argument: SentArgument, value: unknown): void {
  const before = pairs.list.length;
  addPairs(pairs, argument, value);
  for (const [name, text] of pairs.list.slice(before)) fields.push([name, text]);
}

const mostFiles = 100;

/** A file, or each of an array of files. */
function fileFields(plan: BodyPlan, argument: SentArgument, value: unknown, args: Arguments): FormPart[] {
  const files = Array.isArray(value) ? value : [value];
  if (files.length > mostFiles)
    throw refusedArgument(argument, `found ${files.length} files; allowed: at most ${mostFiles}`);
  const format = argument.style ?? plan.arrayFormat;
  return files.map((file, index) => {
    const { bytes, mediaType, name = 'file' } = fileContent(argument, file);
    const mark = !Array.isArray(value) ? '' : format === 'indices' ? `[${index}]` : format === 'brackets' ? '[]' : '';
    const type = mediaTypeOfArgument(argument, args) ?? mediaType ?? 'application/octet-stream';
    return [`${argument.wireName}${mark}`, bytes, partOf(fileNameOf(argument, args) ?? name, type)];
  });
}

function partOf(fileName: string | undefined, mediaType: string | undefined): NonNullable<FormPart[2]> {
  return { ...(fileName !== undefined && { fileName }), ...(mediaType !== undefined && { mediaType }) };
}
