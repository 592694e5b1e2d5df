import { foldedHeader, isReadAs } from '../../domain/http/parameter-names.ts';
import { References } from '../document/references.ts';
import type { ApiOperation } from '../model.ts';
import type { ImportOutcome } from '../plan-outline.ts';
import { type CredentialNames, short } from '../tools/input-arguments.ts';
import type { ImportedTool } from '../tools/made-tool.ts';
import type { ToolSource } from '../tools/make-tool.ts';
import { compareBody } from './compare-body.ts';
import { compareInput } from './compare-input.ts';
import { type Loss, namedFields, notListed, SchemaComparison } from './compare-schema.ts';
import { describedRequest, type InputDescription } from './described-inputs.ts';
import { SchemaReader } from './schema-variants.ts';
import { readToolInputs, type ToolInput, type ToolInputs } from './tool-inputs.ts';

/** Maximum number of references that are followed for one tool. */
const maxFollowed = 20_000;

/**
 * Compares the description of an operation with its finished tool. Reads both independently of the code that builds
 * tools, so it detects what that code misses.
 */
export function compareTool(
  operation: ApiOperation,
  tool: ImportedTool,
  { root, finder, credential }: ToolSource,
): { outcome: ImportOutcome; notes: string[] } {
  const references = new References(root, finder, maxFollowed);
  const described = describedRequest(operation, root, references);
  const inputs = readToolInputs(tool);
  const reader = new SchemaReader(references);
  const schemas = new SchemaComparison(reader, new SchemaReader(new References({}), true));
  const losses: Loss[] = [];
  for (const input of [...described.inputs, ...undeclared(operation, described.inputs)]) {
    if (isSetByService(input) || isCredential(input, credential)) continue;
    const found = findInput(input, operation, inputs);
    if (found === 'not in the path') continue;
    if (found) losses.push(...compareInput(input, found, schemas));
    else losses.push(missingLoss(input, inputs));
  }
  if (/%7B|%3C/i.test(tool.url.split('?')[0] ?? '') && /[{<]/.test(operation.route))
    losses.push({ kind: 'partial', note: 'a part of the path' });
  const { headers = {} } = tool;
  if (needsAccept(operation) && !inputs.headers.has('accept'))
    losses.push({ kind: 'partial', note: 'the response type' });
  const body = compareBody(
    described.body,
    { tool: inputs, headers, method: tool.method, credential: credential.listed },
    { schemas, reader },
  );
  return outcomeOf([...losses, ...body.losses], body.others);
}

function outcomeOf(losses: readonly Loss[], others: readonly string[]): { outcome: ImportOutcome; notes: string[] } {
  const notesOf = (kind: Loss['kind']) => {
    const byNote = Map.groupBy(
      losses.filter((loss) => loss.kind === kind),
      ({ note }) => note,
    );
    return [...byNote].map(([note, same]) => noteWith(note, [...new Set(same.flatMap(({ field }) => field ?? []))]));
  };
  const [missing, loosened] = [notesOf('partial'), notesOf('loosened').toSorted()];
  const outcome = missing.length > 0 ? 'partial' : loosened.length > 0 ? 'loosened' : 'whole';
  return { outcome, notes: [...missing, ...loosened, ...others] };
}

const maxNames = 150;

/** Returns a note with the fields that it is about, as many as fit. */
function noteWith(note: string, fields: readonly string[]): string {
  if (fields.length === 0) return note;
  let text = fields[0] ?? '';
  let count = 1;
  while (count < fields.length && text.length + (fields[count] ?? '').length < maxNames) text += `, ${fields[count++]}`;
  const more = fields.length - count;
  return `${note}: ${JSON.stringify(more > 0 ? `${text} and ${more} more` : text)}`;
}

/** Returns the parameter names in an operation's path, in order. */
function namesInPath({ route }: ApiOperation): string[] {
  return [...route.matchAll(/\{([^{}]*)\}/g)].map((match) => match[1] ?? '');
}

/** Returns parameters that only the path names. */
function undeclared(operation: ApiOperation, inputs: readonly InputDescription[]): InputDescription[] {
  const known = new Set(inputs.map(({ name }) => name));
  return [...new Set(namesInPath(operation))].flatMap((name) =>
    known.has(name) ? [] : [{ location: 'path', name, isRequired: true, schema: { type: 'string' }, suggested: [] }],
  );
}

function findInput(
  { location, name }: InputDescription,
  operation: ApiOperation,
  { path, query, headers, cookies }: ToolInputs,
): ToolInput | 'not in the path' | undefined {
  if (location === 'query') return query.get(name);
  if (location === 'cookie') return cookies.get(name);
  if (location === 'header') return headers.get(foldedHeader(name));
  // A query string input is a single argument, or an argument whose properties are the pairs.
  if (location === 'querystring') return query.get(name) ?? query.entries().find(([pair]) => pair.startsWith(':'))?.[1];
  if (location !== 'path') return undefined;
  const names = namesInPath(operation);
  const at = names.indexOf(name);
  if (at >= 0) return names.length === path.length ? path[at] : undefined;
  return query.get(name) ?? query.values().find(({ wireName }) => wireName === name) ?? 'not in the path';
}

function missingLoss({ location, name, isRequired }: InputDescription, { spread }: ToolInputs): Loss {
  const note = `the ${nounOf(location)} ${short(name)}`;
  const [other] = location === 'query' ? spread.query : [];
  if (!other || isRequired) return { kind: 'partial', note };
  const isNamed = String(other.definition.description ?? '').includes(name);
  return { kind: 'loosened', note: isNamed ? namedFields : notListed, field: name };
}

function nounOf(location: string): string {
  if (location === 'cookie' || location === 'header') return location;
  return location === 'path' || location === 'query' ? `${location} parameter` : `input in ${short(location)}`;
}

/** Headers of HTTP itself, of the body, and of the response (OpenAPI 3.1, Parameter Object). */
const ofHttp =
  /^(?:accept(?:-encoding|-charset)?|authorization|connection|content-(?:length|type)|date|expect|host|keep-alive|te|trace(?:parent|state)|trailer|transfer-encoding|upgrade|user-agent|via)$/;

function isSetByService({ location, name }: InputDescription): boolean {
  return location === 'header' && ofHttp.test(foldedHeader(name));
}

/** Headers of an AWS signature (version 4). */
const ofSignature = /^x-amz-(?:content-sha256|date|algorithm|credential|security-token|signature|signedheaders)$/;

function isCredential({ location, name }: InputDescription, credential: CredentialNames): boolean {
  if (location === 'cookie') return credential.cookies.has(name);
  if (location !== 'header' && location !== 'query') return false;
  if (credential.isAws && ofSignature.test(name.toLowerCase())) return true;
  if (credential.listed.has(name.toLowerCase())) return true;
  return location === 'query' ? isReadAs(name, credential.query) : credential.headers.has(foldedHeader(name));
}

/** Returns true if all described response types differ from the types that the service requests by default. */
function needsAccept({ answers: { mediaTypes } }: ApiOperation): boolean {
  const isOther = (type: string) => /^[\w.+-]+\/[\w.+-]+(?:\s*;[\x20-\x7e]*)?$/.test(type) && type.length <= 200;
  return mediaTypes.length > 0 && mediaTypes.every((type) => isOther(type) && !/^application\/json\b/i.test(type));
}
