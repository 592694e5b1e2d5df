import { getHeaderNameProblem, isHeaderName } from '@toolhost/tool-config/http/headers';
import { foldHeaderName, isReadAs, type OwnedNames } from '@toolhost/tool-config/http/parameter-names';
import { getField, isFields, toList, toText, toTexts } from '../document/lenient.ts';
import type { ApiInput, ApiOperation, InputStyle } from '../model.ts';
import type { ArgumentNames } from './names.ts';
import type { SchemaBuilder } from './simple-schema.ts';
import { joinSentences, maxFieldText, toPlainText, toVisibleName } from './texts.ts';
import type { ArgumentDraft, BuildReport } from './tool-candidate.ts';

/** Names that carry the credential, folded for comparison. No argument may use one of them. */
export type CredentialNames = {
  headers: ReadonlySet<string>;
  cookies: ReadonlySet<string>;
  query: OwnedNames;
  isAws: boolean;
  /**
   * Lowercase names of parameters that most operations use for the credential, in addition to the declared security.
   */
  listedParameters: ReadonlySet<string>;
};

export type BuildContext = {
  builder: SchemaBuilder;
  names: ArgumentNames;
  report: BuildReport;
  credential: CredentialNames;
  /** Folded names of the headers so far. Receivers treat `X_Y` and `x-y` as the same header. */
  seenHeaders: Set<string>;
  /** Characters to remove from optional body fields, because the tool would be too large. */
  charactersToSave: number;
};

/** Path, query, and header arguments, static headers, and query constants. */
export type InputArguments = {
  arguments: ArgumentDraft[];
  headers: [name: string, value: string][];
  query: [name: string, value: string][];
};

export function buildInputArguments(operation: ApiOperation, context: BuildContext): InputArguments {
  const result: InputArguments = { arguments: [], headers: [], query: [] };
  const pathNames = new Set([...operation.route.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] as string));
  const declared = operation.inputs.filter((input) => {
    if (input.location !== 'path' || pathNames.has(input.name)) return true;
    context.report.repairs.add(`the path has no ${quoteShort(input.name)}`);
    return false;
  });
  const declaredNames = new Set(declared.filter(({ location }) => location === 'path').map(({ name }) => name));
  const missing = [...pathNames].filter((name) => !declaredNames.has(name));
  for (const name of missing) context.report.repairs.add(`the path parameter ${quoteShort(name)} is not described`);
  const inputs = [...missing.map(createPathInput), ...declared];
  // Path parameters come first, so that they keep their name if a query parameter has the same name.
  for (const input of inputs.toSorted((a, b) => getRank(a) - getRank(b))) addInput(input, result, context);
  return result;
}

function getRank({ location }: ApiInput): number {
  return location === 'path' ? 0 : 1;
}

function createPathInput(name: string): ApiInput {
  return { name, location: 'path', required: true, description: '', schema: { type: 'string' } };
}

function addInput(rawInput: ApiInput, result: InputArguments, context: BuildContext): void {
  const { report } = context;
  const input = rawInput.location === 'path' ? rawInput : { ...rawInput, name: toVisibleName(rawInput.name) };
  if (input.name === '' || input.name.length > maxNameLength) {
    report.skipIfRequired(`an input named ${quoteShort(input.name)}`, input.required);
    return;
  }
  if (isCredential(input, context.credential)) {
    report.repairs.add(`the credential ${quoteShort(input.name)} is listed as a parameter`);
    return;
  }
  if (input.location === 'cookie' && !isHeaderName(input.name)) {
    report.skipIfRequired(`the cookie ${quoteShort(input.name)}`, input.required);
    return;
  }
  if (input.location === 'header') {
    const foldedName = foldHeaderName(input.name);
    if (foldedName === 'accept') addAcceptHeader(input, result, context);
    if (foldedName === 'accept' || !claimHeader(input, foldedName, context)) return;
  }
  if (input.style === 'tab' || input.style === 'exploded') {
    const problem =
      input.style === 'tab' ? 'values separated by tabs' : `an exploded list or object in a ${input.location}`;
    report.skipIfRequired(`${quoteShort(input.name)}: ${problem}`, input.required);
    return;
  }
  const constant = getConstant(input, context);
  if (constant !== undefined && input.location === 'header') result.headers.push([input.name, constant]);
  else if (constant !== undefined && input.location === 'query') result.query.push([input.name, constant]);
  else result.arguments.push(createArgument(input, context));
}

/** Maximum length of a wire name. */
const maxNameLength = 200;

/** Matches the parts of an AWS signature in headers or in a query. */
const signatureNamePattern =
  /^x-amz-(?:content-sha256|date|algorithm|credential|security-token|signature|signedheaders|expires)$/i;

function isCredential({ name, location }: ApiInput, credential: CredentialNames): boolean {
  const isSigned = credential.isAws && signatureNamePattern.test(name);
  if (location === 'cookie') return credential.cookies.has(name);
  if (location !== 'header' && location !== 'query') return false;
  if (isSigned || credential.listedParameters.has(name.toLowerCase())) return true;
  if (location === 'query') return isReadAs(name, credential.query);
  return credential.headers.has(foldHeaderName(name)) || foldHeaderName(name) === 'authorization';
}

/** Returns true if a parameter or form field holds the credential, based on its name. */
export function isListedCredential(name: string, { headers, query, listedParameters }: CredentialNames): boolean {
  return listedParameters.has(name.toLowerCase()) || isReadAs(name, query) || headers.has(foldHeaderName(name));
}

/** Adds an argument for the response type if the API offers several, or a static header if it offers only one. */
function addAcceptHeader(input: ApiInput, result: InputArguments, context: BuildContext): void {
  const { schema } = context.builder.flat(input.schema);
  const choices = toTexts(schema.enum).filter(isMediaType);
  const onlyType = getOnlyValue(schema) ?? (input.required ? toText(schema.default) : '');
  if (choices.length > 1) result.arguments.push(createAcceptArgument(input, choices, context));
  else if (isMediaType(onlyType)) result.headers.push(['Accept', onlyType]);
}

/**
 * Claims the name of a header. Returns true if it becomes an argument or a constant, and false if its name was claimed
 * before or Toolhost sets it, as it does for the body's headers and those of HTTP itself (OpenAPI 3.1, 4.8.12).
 */
function claimHeader(input: ApiInput, foldedName: string, context: BuildContext): boolean {
  const { report, seenHeaders } = context;
  if (foldedName === 'content-type') return false;
  if (seenHeaders.has(foldedName)) {
    report.repairs.add(`the header ${quoteShort(input.name)} is described twice`);
    return false;
  }
  seenHeaders.add(foldedName);
  if (foldedName === 'cookie') {
    report.skipIfRequired('the header "Cookie" as a whole', input.required);
    return false;
  }
  const isCallerHeader = foldedName !== 'user-agent' || getConstant(input, context) !== undefined;
  if (isCallerHeader && getHeaderNameProblem(input.name) === undefined) return true;
  report.repairs.add(`the header ${quoteShort(input.name)} is set by the service`);
  return false;
}

/** Returns an argument for the response type, which lets agents choose a type other than the default. */
function createAcceptArgument(input: ApiInput, choices: readonly string[], context: BuildContext): ArgumentDraft {
  const { default: declaredDefault } = context.builder.flat(input.schema).schema;
  const defaultChoice =
    choices.find((choice) => choice === declaredDefault) ?? choices.find((choice) => /[/+]json\b/i.test(choice));
  const argument = createArgument({ ...input, name: 'Accept' }, context);
  return {
    ...argument,
    required: false,
    schema: { ...argument.schema, enum: choices, default: defaultChoice ?? choices[0] },
  };
}

/** Returns true if a text is a media type of a response. It may have parameters such as a version. */
function isMediaType(text: string): boolean {
  return text.length <= 200 && /^[\w.+*-]+\/[\w.+*-]+(?:\s*;[\x20-\x7e]*)?$/.test(text);
}

/** Returns the value of a required input that allows only one value, or of a header that names a version. */
function getConstant(input: ApiInput, { builder }: BuildContext): string | undefined {
  if (!input.required || input.location === 'path') return undefined;
  const { schema } = builder.flat(input.schema);
  const onlyAllowed = getOnlyValue(schema);
  if (onlyAllowed !== undefined) return onlyAllowed;
  if (input.location !== 'header' || !/version|revision/i.test(input.name)) return undefined;
  const defaultValue = toText(schema.default) || toText(schema.example);
  return /^[\x21-\x7e]{1,100}$/.test(defaultValue) ? defaultValue : undefined;
}

function getOnlyValue(schema: unknown): string | undefined {
  const values = getField(schema, 'const') !== undefined ? [getField(schema, 'const')] : getField(schema, 'enum');
  if (!Array.isArray(values) || values.length !== 1 || isFields(values[0]) || getField(schema, 'items') !== undefined)
    return undefined;
  const text = toText(values[0]);
  return text !== '' && /^[\x20-\x7e]{1,200}$/.test(text) && text === text.trim() ? text : undefined;
}

function createArgument(input: ApiInput, { builder, names }: BuildContext): ArgumentDraft {
  const schema = builder.build(input.schema);
  const inputText = toPlainText(input.description, maxFieldText);
  const schemaText = typeof schema.description === 'string' ? schema.description : '';
  // Only the end of the schema's text, which describes values, is added to the input's own text.
  const valueText = /^(?:Values|Default|Example): /.test(schemaText)
    ? schemaText
    : (/(?:Values|Default|Example): .*$/.exec(schemaText)?.[0] ?? '');
  const text =
    inputText === ''
      ? schemaText
      : joinSentences([
          inputText,
          /default/i.test(inputText) ? valueText.replace(/ ?(?:Default|Example): .*$/, '') : valueText,
        ]);
  const { description: _, type, ...otherKeywords } = schema;
  const isObject = canBeObject(schema);
  const isSpread = input.style === 'repeat' && isObject;
  const { prefix, location } = input;
  // Arrays in a path are always joined by commas, so they need no style.
  const wire = {
    ...((location !== 'path' || isObject || input.style === 'json') &&
      toWireStyle(input.style, isObject ? 'object' : type)),
    ...(input.allowsSlashes && { allow_slashes: true }),
    ...(input.allowsReserved && { allow_reserved: true }),
    ...(location === 'querystring' && { style: 'querystring' }),
  };
  const name = names.assign(isSpread ? input.name : removeBrackets(input.name));
  return {
    name,
    wireName: input.name,
    location: location === 'querystring' ? 'query' : (location as ArgumentDraft['location']),
    required: input.required,
    schema: { ...(type !== undefined && { type }), ...(text !== '' && { description: text }), ...otherKeywords },
    ...(prefix !== undefined && { prefix }),
    wire,
  };
}

/** Returns true if a schema or one of its alternatives allows an object. */
export function canBeObject(schema: unknown): boolean {
  return [getField(schema, 'type')].flat().includes('object') || toList(getField(schema, 'anyOf')).some(canBeObject);
}

/** Removes brackets: the wire name `ids[]` becomes the argument `ids`. */
function removeBrackets(name: string): string {
  return name.replace(/\[\]$/, '');
}

/** Returns the style keyword. Repeated arrays and scalars need none. */
export function toWireStyle(style: InputStyle | undefined, type: unknown): { style?: string } {
  if (style === undefined || (style === 'repeat' && type !== 'object')) return {};
  return { style };
}

export function quoteShort(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name).replaceAll(
    /[\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f]/g,
    '',
  );
}
