import type { ApiDescription, Finding } from '../model.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { type RequestBody, readBodyText } from './request-bodies.ts';
import { FormValue, ScriptReader, type ScriptValue, toScriptText, UnknownValue } from './script-values.ts';

/** Matches the beginning of a script. "Copy as fetch" in a browser begins with the call itself. */
const scriptStart =
  /^(?:\s|\/\/[^\n]*\n|\/\*[^*]*\*+(?:[^/*][^*]*\*+)*\/)*(?:(?:return\s+|void\s+)?(?:await\s+)?(?:window\.|globalThis\.)?fetch\s*\(|(?:const|let|var|import|export|function)\s|\(?\s*async\b|[\w$.]+\s*[(=]|['"]use strict['"])/;

/** Returns true if a text is a script that calls `fetch`. */
export function isFetch(text: string): boolean {
  return scriptStart.test(text.slice(0, 10_000)) && /\bfetch\s*\(/.test(text);
}

/** Matches strings and comments, declarations with a value, changes to headers and forms, and calls of fetch. */
const relevantCode =
  /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\b(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*(?::[^=\n;]{1,80})?=(?!=)|\b([A-Za-z_$][\w$]*)\.(?:append|set)\s*\(|\bfetch\s*\(/g;

/**
 * Maximum number of characters that are read, as a multiple of the text length: after a declaration that cannot be
 * read, the search continues right after its name, so text may be read several times.
 */
const maxWork = 8;

/** Reads the `fetch` calls in a script, as copied by browsers ("Copy as fetch") or as written by people. */
export function readFetch(text: string): ApiDescription {
  const requests: DescribedRequest[] = [];
  const findings: Finding[] = [];
  const constants = new Map<string, ScriptValue>();
  let remainingWork = maxWork * text.length;
  const search = new RegExp(relevantCode);
  for (let match = search.exec(text); match && remainingWork > 0; match = search.exec(text)) {
    const [matchedText, declaredName, changedName] = match;
    if (!declaredName && !changedName && !matchedText.startsWith('fetch')) continue;
    const from = search.lastIndex;
    if (declaredName && /^\s*(?:await\s+)?(?:\w+\.)*fetch\s*\(/.test(text.slice(from, from + 100))) continue;
    const reader = new ScriptReader(text, from, constants);
    if (declaredName) {
      const value = reader.readExpression();
      if (!(value instanceof UnknownValue)) constants.set(declaredName, value);
      remainingWork -= reader.position - from;
      // A call inside the value still has to be read.
      search.lastIndex = value instanceof UnknownValue ? from : reader.position;
    } else {
      const callArguments = reader.readArguments();
      remainingWork -= reader.position - from;
      if (changedName) applyChange(constants.get(changedName), callArguments);
      else requests.push(toRequest(callArguments, `fetch ${requests.length + 1}`));
      search.lastIndex = changedName ? reader.position : from;
    }
  }
  if (remainingWork <= 0) findings.push({ at: 'document', message: 'script is too long; the remainder is left out' });
  const title = findHostTitle(requests, 'fetch');
  return describeRequests(
    requests,
    { format: 'fetch', version: '', title, description: '', isRecorded: true },
    findings,
  );
}

/** Applies `headers.append(name, value)`, or the same call on a form that the script created before. */
function applyChange(target: ScriptValue | undefined, [name, value]: readonly ScriptValue[]): void {
  if (typeof name !== 'string') return;
  if (target instanceof Map) target.set(name, value ?? null);
  if (target instanceof FormValue) target.pairs.push([name, toScriptText(value)]);
}

function toRequest([target, options]: readonly ScriptValue[], at: string): DescribedRequest {
  const getOption = (name: string): ScriptValue => (options instanceof Map ? (options.get(name) ?? null) : null);
  const headers = readHeaders(getOption('headers'));
  const contentType = headers.find(([name]) => /^content-type$/i.test(name))?.[1];
  const method = toScriptText(getOption('method')).toUpperCase();
  return {
    method: /^[A-Z]{1,20}$/.test(method) ? method : 'GET',
    url: toScriptText(target),
    // Browser cookies belong to a person, not to a tool.
    headers: headers.filter(([name]) => !/^cookie$/i.test(name)),
    body: toBody(getOption('body'), contentType),
    at,
  };
}

function readHeaders(value: ScriptValue): [string, string][] {
  const pairs = value instanceof Map ? [...value] : Array.isArray(value) ? value.map(toPair) : [];
  return pairs
    .map(([name, headerValue]): [string, string] => [name, toScriptText(headerValue)])
    .filter(([name]) => name !== '');
}

function toPair(value: ScriptValue): [string, ScriptValue] {
  return Array.isArray(value) ? [toScriptText(value[0]), value[1] ?? null] : ['', null];
}

function toBody(value: ScriptValue, contentType: string | undefined): RequestBody | undefined {
  if (value === null) return undefined;
  if (value instanceof FormValue) {
    const fields = value.pairs.map(([name, fieldValue]) => ({ name, value: fieldValue, isFile: false }));
    return { mediaType: 'application/x-www-form-urlencoded', fields };
  }
  const isForm = value instanceof UnknownValue && contentType === undefined && /form/i.test(value.name);
  if (isForm) return { mediaType: 'multipart/form-data', fields: [] };
  return readBodyText(contentType, toScriptText(value));
}
