import { headerNameProblem, isHeaderName } from '../../domain/http/headers.ts';
import { foldedHeader, isReadAs, type OwnedNames } from '../../domain/http/parameter-names.ts';
import { asText, asTexts, field, isFields, listOf } from '../document/lenient.ts';
import type { ApiInput, ApiOperation, InputStyle } from '../model.ts';
import type { MadeArgument, Report } from './made-tool.ts';
import type { ArgumentNames } from './names.ts';
import type { SchemaMaker } from './simple-schema.ts';
import { joined, mostFieldText, plainText, visibleName } from './texts.ts';

/** Names that carry the credential, in the form used for comparison. No argument may use them. */
export type CredentialNames = {
  headers: ReadonlySet<string>;
  cookies: ReadonlySet<string>;
  query: OwnedNames;
  isAws: boolean;
  /**
   * Lowercase names of parameters that most operations use for the credential, in addition to the declared security.
   */
  listed: ReadonlySet<string>;
};

export type Making = {
  maker: SchemaMaker;
  names: ArgumentNames;
  report: Report;
  credential: CredentialNames;
  /** Folded names of the headers so far. Receivers treat `X_Y` and `x-y` as the same header. */
  seen: Set<string>;
  /** Characters to remove from optional body fields, because the tool would be too large. */
  save: number;
};

/** Path, query, and header arguments, static headers, and query constants. */
export type InputParts = {
  arguments: MadeArgument[];
  headers: [name: string, value: string][];
  query: [name: string, value: string][];
};

export function inputArguments(operation: ApiOperation, making: Making): InputParts {
  const parts: InputParts = { arguments: [], headers: [], query: [] };
  const inPath = new Set([...operation.route.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] as string));
  const declared = operation.inputs.filter((input) => {
    if (input.location !== 'path' || inPath.has(input.name)) return true;
    making.report.repairs.add(`the path has no ${short(input.name)}`);
    return false;
  });
  const known = new Set(declared.filter(({ location }) => location === 'path').map(({ name }) => name));
  const missing = [...inPath].filter((name) => !known.has(name));
  for (const name of missing) making.report.repairs.add(`the path parameter ${short(name)} is not described`);
  const inputs = [...missing.map(undeclared), ...declared];
  // Path names come first, because they keep their name if two are equal.
  for (const input of inputs.toSorted((a, b) => rank(a) - rank(b))) addInput(input, parts, making);
  return parts;
}

function rank({ location }: ApiInput): number {
  return location === 'path' ? 0 : 1;
}

function undeclared(name: string): ApiInput {
  return { name, location: 'path', required: true, description: '', schema: { type: 'string' } };
}

function addInput(described: ApiInput, parts: InputParts, making: Making): void {
  const { report } = making;
  const input = described.location === 'path' ? described : { ...described, name: visibleName(described.name) };
  if (input.name === '' || input.name.length > longestName) {
    report.skipRequired(`an input named ${short(input.name)}`, input.required);
    return;
  }
  if (isCredential(input, making.credential)) {
    report.repairs.add(`the credential ${short(input.name)} is listed as a parameter`);
    return;
  }
  if (input.location === 'cookie' && !isHeaderName(input.name)) {
    report.skipRequired(`the cookie ${short(input.name)}`, input.required);
    return;
  }
  if (input.location === 'header' && !isSendable(input, parts, making)) return;
  if (input.style === 'tab' || input.style === 'exploded') {
    const what =
      input.style === 'tab' ? 'values separated by tabs' : `an exploded list or object in a ${input.location}`;
    report.skipRequired(`${short(input.name)}: ${what}`, input.required);
    return;
  }
  const constant = constantOf(input, making);
  if (constant !== undefined && input.location === 'header') parts.headers.push([input.name, constant]);
  else if (constant !== undefined && input.location === 'query') parts.query.push([input.name, constant]);
  else parts.arguments.push(argumentOf(input, making));
}

/** Maximum length of a wire name. */
const longestName = 200;

/** Parts of an AWS signature in headers or in a query. */
const partOfSignature =
  /^x-amz-(?:content-sha256|date|algorithm|credential|security-token|signature|signedheaders|expires)$/i;

function isCredential({ name, location }: ApiInput, credential: CredentialNames): boolean {
  const isSigned = credential.isAws && partOfSignature.test(name);
  if (location === 'cookie') return credential.cookies.has(name);
  if (location !== 'header' && location !== 'query') return false;
  if (isSigned || credential.listed.has(name.toLowerCase())) return true;
  if (location === 'query') return isReadAs(name, credential.query);
  return credential.headers.has(foldedHeader(name)) || foldedHeader(name) === 'authorization';
}

/** Returns true if a parameter or form field holds the credential, based on its name. */
export function isListedCredential(name: string, { headers, query, listed }: CredentialNames): boolean {
  return listed.has(name.toLowerCase()) || isReadAs(name, query) || headers.has(foldedHeader(name));
}

/**
 * Returns false for headers that the service sets: headers of the body, of the response, and of HTTP itself (OpenAPI
 * 3.1, 4.8.12).
 */
function isSendable(input: ApiInput, parts: InputParts, making: Making): boolean {
  const { report, maker, seen } = making;
  const folded = foldedHeader(input.name);
  if (folded === 'accept' || folded === 'content-type') {
    const { schema } = maker.flat(input.schema);
    const choices = folded === 'accept' ? asTexts(schema.enum).filter(isMediaType) : [];
    if (choices.length > 1) {
      parts.arguments.push(acceptArgument(input, choices, making));
      return false;
    }
    const given = onlyValue(schema) ?? (input.required ? asText(schema.default) : '');
    if (folded === 'accept' && isMediaType(given)) parts.headers.push(['Accept', given]);
    return false;
  }
  if (seen.has(folded)) {
    report.repairs.add(`the header ${short(input.name)} is described twice`);
    return false;
  }
  seen.add(folded);
  if (folded === 'cookie') {
    report.skipRequired('the header "Cookie" as a whole', input.required);
    return false;
  }
  const isOfAuthor = folded !== 'user-agent' || constantOf(input, making) !== undefined;
  if (isOfAuthor && headerNameProblem(input.name) === undefined) return true;
  report.repairs.add(`the header ${short(input.name)} is set by the service`);
  return false;
}

/** Returns an argument for the response type, which lets agents choose a type other than the default. */
function acceptArgument(input: ApiInput, choices: readonly string[], making: Making): MadeArgument {
  const { default: given } = making.maker.flat(input.schema).schema;
  const usual = choices.find((choice) => choice === given) ?? choices.find((choice) => /[/+]json\b/i.test(choice));
  const made = argumentOf({ ...input, name: 'Accept' }, making);
  return { ...made, required: false, schema: { ...made.schema, enum: choices, default: usual ?? choices[0] } };
}

/** Returns true if a text is a media type of a response. It may have parameters such as a version. */
function isMediaType(text: string): boolean {
  return text.length <= 200 && /^[\w.+*-]+\/[\w.+*-]+(?:\s*;[\x20-\x7e]*)?$/.test(text);
}

/** Returns the value of a required input that allows only one value, or of a header that names a version. */
function constantOf(input: ApiInput, { maker }: Making): string | undefined {
  if (!input.required || input.location === 'path') return undefined;
  const { schema } = maker.flat(input.schema);
  const only = onlyValue(schema);
  if (only !== undefined) return only;
  if (input.location !== 'header' || !/version|revision/i.test(input.name)) return undefined;
  const usual = asText(schema.default) || asText(schema.example);
  return /^[\x21-\x7e]{1,100}$/.test(usual) ? usual : undefined;
}

function onlyValue(schema: unknown): string | undefined {
  const listed = field(schema, 'const') !== undefined ? [field(schema, 'const')] : field(schema, 'enum');
  if (!Array.isArray(listed) || listed.length !== 1 || isFields(listed[0]) || field(schema, 'items') !== undefined)
    return undefined;
  const text = asText(listed[0]);
  return text !== '' && /^[\x20-\x7e]{1,200}$/.test(text) && text === text.trim() ? text : undefined;
}

function argumentOf(input: ApiInput, { maker, names }: Making): MadeArgument {
  const made = maker.simple(input.schema);
  const own = plainText(input.description, mostFieldText);
  const inner = typeof made.description === 'string' ? made.description : '';
  const extra = /^(?:Values|Default|Example): /.exec(inner)
    ? inner
    : (/(?:Values|Default|Example): .*$/.exec(inner)?.[0] ?? '');
  const text =
    own === '' ? inner : joined([own, /default/i.test(own) ? extra.replace(/ ?(?:Default|Example): .*$/, '') : extra]);
  const { description: _, type, ...rest } = made;
  const isObject = mayBeObject(made);
  const isSpread = input.style === 'repeat' && isObject;
  const { prefix, location } = input;
  // Arrays in a path are joined by commas in any case.
  const wire = {
    ...((location !== 'path' || isObject || input.style === 'json') &&
      wireStyle(input.style, isObject ? 'object' : type)),
    ...(input.allowSlashes && { allow_slashes: true }),
    ...(input.allowReserved && { allow_reserved: true }),
    ...(location === 'querystring' && { style: 'querystring' }),
  };
  const name = names.take(isSpread ? input.name : withoutBrackets(input.name));
  return {
    name,
    wireName: input.name,
    location: location === 'querystring' ? 'query' : (location as MadeArgument['location']),
    required: input.required,
    schema: { ...(type !== undefined && { type }), ...(text !== '' && { description: text }), ...rest },
    ...(prefix !== undefined && { prefix }),
    wire,
  };
}

/** Returns true if a schema or one of its alternatives allows an object. */
export function mayBeObject(schema: unknown): boolean {
  return [field(schema, 'type')].flat().includes('object') || listOf(field(schema, 'anyOf')).some(mayBeObject);
}

/** Removes brackets: the wire name `ids[]` becomes the argument `ids`. */
function withoutBrackets(name: string): string {
  return name.replace(/\[\]$/, '');
}

/** Returns the style keyword. Repeated arrays and scalars need none. */
export function wireStyle(style: InputStyle | undefined, type: unknown): { style?: string } {
  if (style === undefined || (style === 'repeat' && type !== 'object')) return {};
  return { style };
}

export function short(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name).replaceAll(
    /[\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f]/g,
    '',
  );
}
