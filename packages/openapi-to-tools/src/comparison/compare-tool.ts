import { foldHeaderName, isReadAs } from '@toolhost/tool-config/http/parameter-names';
import { References } from '../document/references.ts';
import type { ApiOperation } from '../model.ts';
import type { ImportOutcome } from '../plan-outline.ts';
import type { ToolSource } from '../tools/build-tool.ts';
import { type CredentialNames, quoteShort } from '../tools/input-arguments.ts';
import type { ImportedTool } from '../tools/tool-candidate.ts';
import { compareBody } from './compare-body.ts';
import { compareInput } from './compare-input.ts';
import { type Loss, namedFieldsNote, notListedNote, SchemaComparison } from './compare-schema.ts';
import { type InputDescription, readDescribedRequest } from './described-inputs.ts';
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
  const described = readDescribedRequest(operation, root, references);
  const inputs = readToolInputs(tool);
  const reader = new SchemaReader(references);
  const schemas = new SchemaComparison(reader, new SchemaReader(new References({}), true));
  const losses: Loss[] = [];
  for (const input of [...described.inputs, ...getUndeclared(operation, described.inputs)]) {
    if (isSetByService(input) || isCredential(input, credential)) continue;
    const toolInput = findInput(input, operation, inputs);
    if (toolInput === 'not in the path') continue;
    if (toolInput) losses.push(...compareInput(input, toolInput, schemas));
    else losses.push(createMissingLoss(input, inputs));
  }
  if (/%7B|%3C/i.test(tool.url.split('?')[0] ?? '') && /[{<]/.test(operation.route))
    losses.push({ kind: 'partial', note: 'a part of the path' });
  const { headers = {} } = tool;
  if (needsAccept(operation) && !inputs.headers.has('accept'))
    losses.push({ kind: 'partial', note: 'the response type' });
  const body = compareBody(
    described.body,
    { tool: inputs, headers, method: tool.method, credential: credential.listedParameters },
    { comparison: schemas, reader },
  );
  return toOutcome([...losses, ...body.losses], body.otherTypes);
}

function toOutcome(
  losses: readonly Loss[],
  otherNotes: readonly string[],
): { outcome: ImportOutcome; notes: string[] } {
  const collectNotes = (kind: Loss['kind']) => {
    const byNote = Map.groupBy(
      losses.filter((loss) => loss.kind === kind),
      ({ note }) => note,
    );
    return [...byNote].map(([note, lossesOfNote]) =>
      addFields(note, [...new Set(lossesOfNote.flatMap(({ field }) => field ?? []))]),
    );
  };
  const [missing, loosened] = [collectNotes('partial'), collectNotes('loosened').toSorted()];
  const outcome = missing.length > 0 ? 'partial' : loosened.length > 0 ? 'loosened' : 'whole';
  return { outcome, notes: [...missing, ...loosened, ...otherNotes] };
}

const maxNames = 150;

/** Returns a note with the fields that it is about, as many as fit. */
function addFields(note: string, fields: readonly string[]): string {
  if (fields.length === 0) return note;
  let fieldList = fields[0] ?? '';
  let count = 1;
  while (count < fields.length && fieldList.length + (fields[count] ?? '').length < maxNames)
    fieldList += `, ${fields[count++]}`;
  const omittedCount = fields.length - count;
  return `${note}: ${JSON.stringify(omittedCount > 0 ? `${fieldList} and ${omittedCount} more` : fieldList)}`;
}

/** Returns the parameter names in an operation's path, in order. */
function getPathNames({ route }: ApiOperation): string[] {
  return [...route.matchAll(/\{([^{}]*)\}/g)].map((match) => match[1] ?? '');
}

/** Returns the parameters of the path that the document does not declare. */
function getUndeclared(operation: ApiOperation, inputs: readonly InputDescription[]): InputDescription[] {
  const declaredNames = new Set(inputs.map(({ name }) => name));
  return [...new Set(getPathNames(operation))].flatMap((name) =>
    declaredNames.has(name)
      ? []
      : [{ location: 'path', name, isRequired: true, schema: { type: 'string' }, suggested: [] }],
  );
}

function findInput(
  { location, name }: InputDescription,
  operation: ApiOperation,
  { path: pathInputs, query, headers, cookies }: ToolInputs,
): ToolInput | 'not in the path' | undefined {
  if (location === 'query') return query.get(name);
  if (location === 'cookie') return cookies.get(name);
  if (location === 'header') return headers.get(foldHeaderName(name));
  // A query string input is a single argument, or an argument whose properties are the pairs.
  if (location === 'querystring') return query.get(name) ?? query.entries().find(([pair]) => pair.startsWith(':'))?.[1];
  if (location !== 'path') return undefined;
  const names = getPathNames(operation);
  const index = names.indexOf(name);
  if (index >= 0) return names.length === pathInputs.length ? pathInputs[index] : undefined;
  return query.get(name) ?? query.values().find(({ wireName }) => wireName === name) ?? 'not in the path';
}

function createMissingLoss({ location, name, isRequired }: InputDescription, { spreadArguments }: ToolInputs): Loss {
  const note = `the ${getNoun(location)} ${quoteShort(name)}`;
  const [openArgument] = location === 'query' ? spreadArguments.query : [];
  if (!openArgument || isRequired) return { kind: 'partial', note };
  const isNamed = String(openArgument.definition.description ?? '').includes(name);
  return { kind: 'loosened', note: isNamed ? namedFieldsNote : notListedNote, field: name };
}

function getNoun(location: string): string {
  if (location === 'cookie' || location === 'header') return location;
  return location === 'path' || location === 'query' ? `${location} parameter` : `input in ${quoteShort(location)}`;
}

/** Matches headers of HTTP itself, of the body, and of the response (OpenAPI 3.1, Parameter Object). */
const technicalHeaders =
  /^(?:accept(?:-encoding|-charset)?|authorization|connection|content-(?:length|type)|date|expect|host|keep-alive|te|trace(?:parent|state)|trailer|transfer-encoding|upgrade|user-agent|via)$/;

function isSetByService({ location, name }: InputDescription): boolean {
  return location === 'header' && technicalHeaders.test(foldHeaderName(name));
}

/** Matches headers of an AWS signature (version 4). */
const signatureHeaders = /^x-amz-(?:content-sha256|date|algorithm|credential|security-token|signature|signedheaders)$/;

function isCredential({ location, name }: InputDescription, credential: CredentialNames): boolean {
  if (location === 'cookie') return credential.cookies.has(name);
  if (location !== 'header' && location !== 'query') return false;
  if (credential.isAws && signatureHeaders.test(name.toLowerCase())) return true;
  if (credential.listedParameters.has(name.toLowerCase())) return true;
  return location === 'query' ? isReadAs(name, credential.query) : credential.headers.has(foldHeaderName(name));
}

/** Returns true if all described response types differ from the types that the service requests by default. */
function needsAccept({ responses: { mediaTypes } }: ApiOperation): boolean {
  const isConcrete = (type: string) => /^[\w.+-]+\/[\w.+-]+(?:\s*;[\x20-\x7e]*)?$/.test(type) && type.length <= 200;
  return mediaTypes.length > 0 && mediaTypes.every((type) => isConcrete(type) && !/^application\/json\b/i.test(type));
}
