import { getField, isFields, type JsonFields, toList, toText } from '../document/lenient.ts';
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
import { type BodyField, createGraphqlBody, type RequestBody, readBodyText } from './request-bodies.ts';

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
    toList(root.items).some((item) => isFields(getField(item, 'request')) || Array.isArray(getField(item, 'items')))
  );
}

/** Headers and credentials that requests inherit from a folder. `at` is the location of the folder's items. */
type Folder = { folders: readonly string[]; headers: readonly CollectionPair[]; auth: unknown; at: string };

type ReadContext = { findings: Finding[]; values: [name: string, value: string][] };

const maxFolders = 20;

export function readBrunoExport(root: JsonFields): ApiDescription {
  const context: ReadContext = { findings: [], values: [] };
  const isOpen = isOpenCollection(root);
  const defaults = getField(isOpen ? root : root.root, 'request');
  const folder = readFolder({ folders: [], headers: [], auth: undefined, at: 'items' }, defaults, '', context);
  const environments = toList(isOpen ? getField(root.config, 'environments') : root.environments);
  for (const environment of environments) context.values.push(...readValues(getField(environment, 'variables')));
  const requests = readRequests(root.items, folder, context);
  const title = toText(root.name) || toText(getField(root.info, 'name')) || findHostTitle(requests, 'Bruno');
  const docs = root.docs ?? getField(root.root, 'docs');
  const format = isOpen ? 'OpenCollection' : 'Bruno';
  const source = { format, version: isOpen ? toText(root.opencollection) : '', title } as const;
  const variables = collectVariables(context.values);
  return describeRequests(requests, { ...source, description: readDescriptionText(docs), variables }, context.findings);
}

/** Reads variable values. A value is a text, or an object with a type. */
function readValues(list: unknown): [name: string, value: string][] {
  return toList(list).map((entry): [string, string] => {
    const value = getField(entry, 'value');
    const isHidden = getField(entry, 'secret') === true;
    return [toText(getField(entry, 'name')), isHidden ? '' : toText(value) || toText(getField(value, 'data'))];
  });
}

function readFolder(outer: Folder, request: unknown, name: string, { values }: ReadContext): Folder {
  values.push(...readValues(getField(request, 'variables') ?? getField(getField(request, 'vars'), 'req')));
  const auth = getField(request, 'auth');
  return {
    folders: name === '' ? outer.folders : [...outer.folders, name],
    headers: [...outer.headers, ...readPairs(getField(request, 'headers'))],
    auth: getMode(auth) === 'inherit' || getMode(auth) === '' ? outer.auth : auth,
    at: outer.at,
  };
}

function readRequests(items: unknown, folder: Folder, context: ReadContext): DescribedRequest[] {
  return toList(items).flatMap((item, index): DescribedRequest[] => {
    const at = `${folder.at}[${index}]`;
    const info = isFields(getField(item, 'info')) ? getField(item, 'info') : item;
    const name = toText(getField(info, 'name'));
    const inner = getField(item, 'items');
    if (Array.isArray(inner) && inner.length > 0 && !getField(item, 'http')) {
      if (folder.folders.length >= maxFolders) return [];
      const innerFolder = readFolder(
        folder,
        getField(item, 'request') ?? getField(getField(item, 'root'), 'request'),
        name,
        context,
      );
      return readRequests(inner, { ...innerFolder, at: `${at}.items` }, context);
    }
    const type = toText(getField(info, 'type'));
    if (type === 'folder' || type === 'js' || type === 'script') return [];
    const request = getField(item, 'http') ?? getField(item, 'graphql') ?? getField(item, 'request');
    const url = toText(getField(request, 'url')).trim();
    if (url === '' || /^(?:grpc|ws|websocket)/i.test(type)) {
      const message = url === '' ? 'is not a request with a URL; left out' : 'is not an HTTP request; left out';
      context.findings.push({ at, message });
      return [];
    }
    context.values.push(
      ...readValues(getField(getField(item, 'runtime'), 'variables') ?? getField(getField(request, 'vars'), 'req')),
    );
    return [toRequest({ request, name, docs: getField(item, 'docs') ?? getField(request, 'docs'), at, url }, folder)];
  });
}

type RequestItem = { request: unknown; name: string; docs: unknown; at: string; url: string };

function toRequest({ request, name, docs, at, url }: RequestItem, folder: Folder): DescribedRequest {
  const headers = [...folder.headers, ...readPairs(getField(request, 'headers'))];
  const sentHeaders = listSentHeaders([
    ...new Map(headers.map((header) => [header.name.toLowerCase(), header])).values(),
  ]);
  const params = toList(getField(request, 'params'));
  const [path, query] = [true, false].map((isPathParameter) =>
    readPairs(params.filter((parameter) => (getField(parameter, 'type') === 'path') === isPathParameter)),
  ) as [CollectionPair[], CollectionPair[]];
  const requestAuth = getField(request, 'auth');
  const isInherited = getMode(requestAuth) === 'inherit' || requestAuth === 'inherit';
  const auth = isInherited ? folder.auth : requestAuth;
  const mode = getMode(auth);
  return {
    name,
    description: readDescriptionText(docs),
    tags: folder.folders.slice(0, 1),
    method: (toText(getField(request, 'method')) || 'GET').toUpperCase(),
    url: addQuery(url, query),
    headers: sentHeaders,
    body: readBody(getField(request, 'body'), sentHeaders.find(([name]) => /^content-type$/i.test(name))?.[1]),
    auth: readBrunoAuth(
      mode,
      (detail) => toText(getField(auth, detail)) || toText(getField(getField(auth, mode), detail)),
    ),
    inputs: [
      ...toDescribedInputs('path', path),
      ...toDescribedInputs('query', query),
      ...toDescribedInputs('header', headers),
    ],
    at,
  };
}

function getMode(auth: unknown): string {
  return toText(getField(auth, 'mode') ?? getField(auth, 'type')) || (typeof auth === 'string' ? auth : '');
}

/**
 * Reads a body: `mode` with a field of that name, or `type` with `data`. If a body has variants, the selected one is
 * used.
 */
function readBody(rawBody: unknown, contentType: string | undefined): RequestBody | undefined {
  const chosen = toList(rawBody).find((variant) => getField(variant, 'selected') === true) ?? toList(rawBody)[0];
  const body = Array.isArray(rawBody) ? getField(chosen, 'body') : rawBody;
  const mode = toText(getField(body, 'mode') ?? getField(body, 'type'));
  const getData = (name: string) => getField(body, 'data') ?? getField(body, name);
  if (/^form-?url-?encoded$/i.test(mode))
    return {
      mediaType: 'application/x-www-form-urlencoded',
      fields: toFormFields(readPairs(getData('formUrlEncoded'))),
    };
  if (/^multipart-?form$/i.test(mode))
    return { mediaType: 'multipart/form-data', fields: readParts(getData('multipartForm')) };
  const graphql = getField(body, 'graphql') ?? body;
  const query = toText(getField(graphql, 'query'));
  if (mode === 'graphql' || (mode === '' && query !== ''))
    return createGraphqlBody(query, toText(getField(graphql, 'variables')));
  if (mode === 'file') return { mediaType: contentType ?? getFileType(getData('file')), text: '' };
  const type = brunoTypes.get(mode);
  return type === undefined ? undefined : readBodyText(contentType ?? type, toText(getData(mode)));
}

function getFileType(files: unknown): string {
  const [firstFile] = toList(files);
  return toText(getField(firstFile, 'contentType')) || 'application/octet-stream';
}

function readParts(list: unknown): BodyField[] {
  const types = toList(list).map((part) => toText(getField(part, 'contentType')));
  return toFormFields(readPairs(list)).map((field, index) =>
    types[index] ? { ...field, mediaType: types[index] } : field,
  );
}
