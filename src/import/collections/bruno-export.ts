import { asText, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { ApiDescription, Finding } from '../model.ts';
import { brunoTypes, readBrunoAuth } from './bruno.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import {
  addQuery,
  type CollectionPair,
  listSentHeaders,
  readDescriptionText,
  readPairs,
  toDescribedInputs,
  toFormFields,
} from './pairs.ts';
import { collectVariables } from './placeholders.ts';
import { type BodyField, makeGraphqlBody, type RequestBody, readBodyText } from './request-bodies.ts';

/**
 * Returns true for a collection exported by Bruno (JSON), or an OpenCollection file (YAML) that contains its requests.
 */
export function isBrunoExport(root: unknown): root is JsonFields {
  return isFields(root) && Array.isArray(root.items) && (isOpenCollection(root) || isBrunoJson(root));
}

function isOpenCollection(root: JsonFields): boolean {
  return root.opencollection !== undefined;
}

function isBrunoJson(root: JsonFields): boolean {
  return (
    root.brunoConfig !== undefined ||
    listOf(root.items).some((item) => isFields(field(item, 'request')) || Array.isArray(field(item, 'items')))
  );
}

/** Headers and credentials that requests inherit from a folder. */
type Folder = { folders: readonly string[]; headers: readonly CollectionPair[]; auth: unknown; at: string };

type Reading = { findings: Finding[]; values: [name: string, value: string][] };

const maxFolders = 20;

export function readBrunoExport(root: JsonFields): ApiDescription {
  const reading: Reading = { findings: [], values: [] };
  const isOpen = isOpenCollection(root);
  const ofAll = field(isOpen ? root : root.root, 'request');
  const folder = folderOf({ folders: [], headers: [], auth: undefined, at: 'items' }, ofAll, '', reading);
  const environments = listOf(isOpen ? field(root.config, 'environments') : root.environments);
  for (const one of environments) reading.values.push(...valuesOf(field(one, 'variables')));
  const requests = requestsIn(root.items, folder, reading);
  const title = asText(root.name) || asText(field(root.info, 'name')) || findHostTitle(requests, 'Bruno');
  const docs = root.docs ?? field(root.root, 'docs');
  const format = isOpen ? 'OpenCollection' : 'Bruno';
  const source = { format, version: isOpen ? asText(root.opencollection) : '', title } as const;
  const variables = collectVariables(reading.values);
  return describeRequests(requests, { ...source, description: readDescriptionText(docs), variables }, reading.findings);
}

/** Reads variable values. A value is a text, or an object with a type. */
function valuesOf(list: unknown): [name: string, value: string][] {
  return listOf(list).map((one): [string, string] => {
    const value = field(one, 'value');
    const isHidden = field(one, 'secret') === true;
    return [asText(field(one, 'name')), isHidden ? '' : asText(value) || asText(field(value, 'data'))];
  });
}

function folderOf(outer: Folder, request: unknown, name: string, { values }: Reading): Folder {
  values.push(...valuesOf(field(request, 'variables') ?? field(field(request, 'vars'), 'req')));
  const auth = field(request, 'auth');
  return {
    folders: name === '' ? outer.folders : [...outer.folders, name],
    headers: [...outer.headers, ...readPairs(field(request, 'headers'))],
    auth: modeOf(auth) === 'inherit' || modeOf(auth) === '' ? outer.auth : auth,
    at: outer.at,
  };
}

function requestsIn(items: unknown, folder: Folder, reading: Reading): DescribedRequest[] {
  return listOf(items).flatMap((item, index): DescribedRequest[] => {
    const at = `${folder.at}[${index}]`;
    const info = isFields(field(item, 'info')) ? field(item, 'info') : item;
    const name = asText(field(info, 'name'));
    const inner = field(item, 'items');
    if (Array.isArray(inner) && inner.length > 0 && !field(item, 'http')) {
      if (folder.folders.length >= maxFolders) return [];
      const own = folderOf(folder, field(item, 'request') ?? field(field(item, 'root'), 'request'), name, reading);
      return requestsIn(inner, { ...own, at: `${at}.items` }, reading);
    }
    const type = asText(field(info, 'type'));
    if (type === 'folder' || type === 'js' || type === 'script') return [];
    const request = field(item, 'http') ?? field(item, 'graphql') ?? field(item, 'request');
    const url = asText(field(request, 'url')).trim();
    if (url === '' || /^(?:grpc|ws|websocket)/i.test(type)) {
      const message = url === '' ? 'is not a request with a URL; left out' : 'is not an HTTP request; left out';
      reading.findings.push({ at, message });
      return [];
    }
    reading.values.push(
      ...valuesOf(field(field(item, 'runtime'), 'variables') ?? field(field(request, 'vars'), 'req')),
    );
    return [requestOf({ request, name, docs: field(item, 'docs') ?? field(request, 'docs'), at, url }, folder)];
  });
}

type Found = { request: unknown; name: string; docs: unknown; at: string; url: string };

function requestOf({ request, name, docs, at, url }: Found, folder: Folder): DescribedRequest {
  const headers = [...folder.headers, ...readPairs(field(request, 'headers'))];
  const sent = listSentHeaders([...new Map(headers.map((header) => [header.name.toLowerCase(), header])).values()]);
  const params = listOf(field(request, 'params'));
  const [path, query] = [true, false].map((isPath) =>
    readPairs(params.filter((one) => (field(one, 'type') === 'path') === isPath)),
  ) as [CollectionPair[], CollectionPair[]];
  const own = field(request, 'auth');
  const isInherited = modeOf(own) === 'inherit' || own === 'inherit';
  const auth = isInherited ? folder.auth : own;
  const mode = modeOf(auth);
  return {
    name,
    description: readDescriptionText(docs),
    tags: folder.folders.slice(0, 1),
    method: (asText(field(request, 'method')) || 'GET').toUpperCase(),
    url: addQuery(url, query),
    headers: sent,
    body: bodyOf(field(request, 'body'), sent.find(([one]) => /^content-type$/i.test(one))?.[1]),
    auth: readBrunoAuth(mode, (detail) => asText(field(auth, detail)) || asText(field(field(auth, mode), detail))),
    inputs: [
      ...toDescribedInputs('path', path),
      ...toDescribedInputs('query', query),
      ...toDescribedInputs('header', headers),
    ],
    at,
  };
}

function modeOf(auth: unknown): string {
  return asText(field(auth, 'mode') ?? field(auth, 'type')) || (typeof auth === 'string' ? auth : '');
}

/**
 * Reads a body: `mode` with a field of that name, or `type` with `data`. If a body has variants, the selected one is
 * used.
 */
function bodyOf(given: unknown, contentType: string | undefined): RequestBody | undefined {
  const chosen = listOf(given).find((one) => field(one, 'selected') === true) ?? listOf(given)[0];
  const body = Array.isArray(given) ? field(chosen, 'body') : given;
  const mode = asText(field(body, 'mode') ?? field(body, 'type'));
  const data = (name: string) => field(body, 'data') ?? field(body, name);
  if (/^form-?url-?encoded$/i.test(mode))
    return {
      mediaType: 'application/x-www-form-urlencoded',
      fields: toFormFields(readPairs(data('formUrlEncoded'))),
    };
  if (/^multipart-?form$/i.test(mode))
    return { mediaType: 'multipart/form-data', fields: partsOf(data('multipartForm')) };
  const graphql = field(body, 'graphql') ?? body;
  const query = asText(field(graphql, 'query'));
  if (mode === 'graphql' || (mode === '' && query !== ''))
    return makeGraphqlBody(query, asText(field(graphql, 'variables')));
  if (mode === 'file') return { mediaType: contentType ?? fileType(data('file')), text: '' };
  const type = brunoTypes.get(mode);
  return type === undefined ? undefined : readBodyText(contentType ?? type, asText(data(mode)));
}

function fileType(files: unknown): string {
  const [first] = listOf(files);
  return asText(field(first, 'contentType')) || 'application/octet-stream';
}

function partsOf(list: unknown): BodyField[] {
  const types = listOf(list).map((one) => asText(field(one, 'contentType')));
  return toFormFields(readPairs(list)).map((part, index) =>
    types[index] ? { ...part, mediaType: types[index] } : part,
  );
}
