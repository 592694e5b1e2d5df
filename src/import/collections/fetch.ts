import type { ApiDescription, Finding } from '../model.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { type RequestBody, readBodyText } from './request-bodies.ts';
import { FormValue, ScriptReader, type ScriptValue, toScriptText, UnknownValue } from './script-values.ts';

/** Beginnings of a script. "Copy as fetch" in a browser begins with the call itself. */
const beginning =
  /^(?:\s|\/\/[^\n]*\n|\/\*[^*]*\*+(?:[^/*][^*]*\*+)*\/)*(?:(?:return\s+|void\s+)?(?:await\s+)?(?:window\.|globalThis\.)?fetch\s*\(|(?:const|let|var|import|export|function)\s|\(?\s*async\b|[\w$.]+\s*[(=]|['"]use strict['"])/;

/** Returns true if a text is a script that calls `fetch`. */
export function isFetch(text: string): boolean {
  return beginning.test(text.slice(0, 10_000)) && /\bfetch\s*\(/.test(text);
}

/** Matches strings and comments, declarations with a value, changes to headers and forms, and calls of fetch. */
const telling =
  /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\b(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*(?::[^=\n;]{1,80})?=(?!=)|\b([A-Za-z_$][\w$]*)\.(?:append|set)\s*\(|\bfetch\s*\(/g;

/**
 * Maximum work, as a multiple of the text length. After a declaration that cannot be read, the search continues right
 * after its name.
 */
const maxWork = 8;

/** Reads the `fetch` calls in a script, as copied by browsers ("Copy as fetch") or as written by people. */
export function readFetch(text: string): ApiDescription {
  const requests: DescribedRequest[] = [];
  const findings: Finding[] = [];
  const constants = new Map<string, ScriptValue>();
  let left = maxWork * text.length;
  const search = new RegExp(telling);
  for (let found = search.exec(text); found && left > 0; found = search.exec(text)) {
    const [whole, declared, changed] = found;
    if (!declared && !changed && !whole.startsWith('fetch')) continue;
    const from = search.lastIndex;
    if (declared && /^\s*(?:await\s+)?(?:\w+\.)*fetch\s*\(/.test(text.slice(from, from + 100))) continue;
    const reader = new ScriptReader(text, from, constants);
    if (declared) {
      const value = reader.expression();
      if (!(value instanceof UnknownValue)) constants.set(declared, value);
      left -= reader.at - from;
      // A call inside the value still has to be read.
      search.lastIndex = value instanceof UnknownValue ? from : reader.at;
    } else {
      const given = reader.arguments();
      left -= reader.at - from;
      if (changed) change(constants.get(changed), given);
      else requests.push(requestOf(given, `fetch ${requests.length + 1}`));
      search.lastIndex = changed ? reader.at : from;
    }
  }
  if (left <= 0) findings.push({ at: 'document', message: 'script is too long; the remainder is left out' });
  const title = findHostTitle(requests, 'fetch');
  return describeRequests(
    requests,
    { format: 'fetch', version: '', title, description: '', isRecorded: true },
    findings,
  );
}

/** Applies `headers.append(name, value)`, or the same call on a form that the script created before. */
function change(target: ScriptValue | undefined, [name, value]: readonly ScriptValue[]): void {
  if (typeof name !== 'string') return;
  if (target instanceof Map) target.set(name, value ?? null);
  if (target instanceof FormValue) target.pairs.push([name, toScriptText(value)]);
}

function requestOf([target, options]: readonly ScriptValue[], at: string): DescribedRequest {
  const option = (name: string): ScriptValue => (options instanceof Map ? (options.get(name) ?? null) : null);
  const headers = headersOf(option('headers'));
  const given = headers.find(([name]) => /^content-type$/i.test(name))?.[1];
  const method = toScriptText(option('method')).toUpperCase();
  return {
    method: /^[A-Z]{1,20}$/.test(method) ? method : 'GET',
    url: toScriptText(target),
    // Browser cookies belong to a person, not to a tool.
    headers: headers.filter(([name]) => !/^cookie$/i.test(name)),
    body: bodyOf(option('body'), given),
    at,
  };
}

function headersOf(value: ScriptValue): [string, string][] {
  const pairs = value instanceof Map ? [...value] : Array.isArray(value) ? value.map(pairOf) : [];
  return pairs.map(([name, one]): [string, string] => [name, toScriptText(one)]).filter(([name]) => name !== '');
}

function pairOf(value: ScriptValue): [string, ScriptValue] {
  return Array.isArray(value) ? [toScriptText(value[0]), value[1] ?? null] : ['', null];
}

function bodyOf(value: ScriptValue, given: string | undefined): RequestBody | undefined {
  if (value === null) return undefined;
  if (value instanceof FormValue) {
    const fields = value.pairs.map(([name, one]) => ({ name, value: one, isFile: false }));
    return { mediaType: 'application/x-www-form-urlencoded', fields };
  }
  const isForm = value instanceof UnknownValue && given === undefined && /form/i.test(value.name);
  if (isForm) return { mediaType: 'multipart/form-data', fields: [] };
  return readBodyText(given, toScriptText(value));
}
