/**
 * Output of the readers of API descriptions, independent of the format. Schemas are kept exactly as in the document.
 */

/** Part of the document that could not be read, was repaired, or was left out. `at` is its location. */
export type Finding = { at: string; message: string };

export const inputLocations = ['path', 'query', 'header', 'cookie', 'querystring'] as const;
export type InputLocation = (typeof inputLocations)[number];

/**
 * Serialization of arrays and objects. `repeat` writes one pair per object property; `comma` joins names and values. No
 * tool can write `tab` or `exploded` (the `explode` of OpenAPI outside of queries).
 */
export type InputStyle = 'repeat' | 'comma' | 'brackets' | 'pipe' | 'space' | 'tab' | 'exploded' | 'deep' | 'json';

export type ApiInput = {
  /** Name in the request. */
  name: string;
  location: InputLocation;
  required: boolean;
  description: string;
  /** Schema exactly as in the document; its references point into the document. */
  schema: unknown;
  style?: InputStyle | undefined;
  /** True if a path value may contain slashes. */
  allowsSlashes?: boolean;
  /** True if the reserved characters of a query value are not encoded. */
  allowsReserved?: boolean;
  /** Text before a path value, as required by the styles `matrix` and `label`. */
  prefix?: string;
};

/** Encoding of one field of a form or multipart body. `mediaType` may list several types, separated by commas. */
export type FieldEncoding = { style: InputStyle | undefined; mediaType: string | undefined };

export type ApiContent = {
  mediaType: string;
  schema: unknown;
  encodings: ReadonlyMap<string, FieldEncoding>;
  /** Body value, if the source is a request rather than a description. */
  example?: unknown;
};

export type ApiBody = { required: boolean; description: string; contents: readonly ApiContent[] };

/** Credentials that are all required together: scheme names, with the scopes of each. */
export type ApiRequirement = ReadonlyMap<string, readonly string[]>;

export type ApiOperation = {
  /** Location in the document, such as `paths./pets.get`. */
  at: string;
  method: string;
  /** Path exactly as in the document. People and later imports identify the operation by this path and its method. */
  path: string;
  /** Path with each parameter as `{name}`, without a fragment. */
  route: string;
  operationId: string | undefined;
  tags: readonly string[];
  summary: string;
  description: string;
  isDeprecated: boolean;
  inputs: readonly ApiInput[];
  body: ApiBody | undefined;
  /**
   * Alternative requirements. Empty if the document describes none; one empty requirement if no credential is needed.
   */
  security: readonly ApiRequirement[];
  /** Servers of this operation, if they differ from the API's servers. */
  servers: readonly ApiServer[] | undefined;
  responses: ApiResponses;
  /** Reason why no tool can be created, if the reader already knows one. */
  unsupportedReason: string | undefined;
};

/** Properties of the described responses that affect the request or how its response is read. */
export type ApiResponses = {
  mediaTypes: readonly string[];
  headers: readonly string[];
  isRedirect: boolean;
  /** Fields of the successful JSON response, and fields one level down as `outer.inner`. */
  fields: readonly string[];
  /** Schema of the successful JSON response, exactly as in the document. */
  schema: unknown;
};

export type ServerVariable = {
  name: string;
  fallback: string | undefined;
  options: readonly string[];
  description: string;
};

/** `url` may be relative and may contain variables in braces. */
export type ApiServer = { url: string; description: string; variables: readonly ServerVariable[] };

export type ApiScheme = {
  name: string;
  /**
   * Address of the request that the credential was found in, the only one that receives it. A credential that a
   * description declares has none.
   */
  address?: string | undefined;
  kind: 'bearer' | 'basic' | 'key' | 'oauth2' | 'aws' | 'unsupported';
  description: string;
  /** Location and name of a key. */
  in?: 'header' | 'query' | 'cookie';
  parameter?: string;
  /** Text before a key, such as `Token token=`. */
  prefix?: string;
  /** URLs that exchange codes and client credentials, and the URL where people log in. */
  tokenUrl?: string | undefined;
  authorizationUrl?: string | undefined;
  clientTokenUrl?: string | undefined;
  /** Region and service of an AWS signature, if they were found. */
  aws?: { region: string; service: string } | undefined;
  /** Reason why the scheme is not supported. */
  reason?: string;
};

export type ApiDescription = {
  format:
    | 'OpenAPI'
    | 'Swagger'
    | 'Postman'
    | 'Insomnia'
    | 'Bruno'
    | 'OpenCollection'
    | 'HTTP file'
    | 'curl'
    | 'fetch'
    | 'HAR';
  version: string;
  title: string;
  description: string;
  tags: readonly { name: string; description: string }[];
  servers: readonly ApiServer[];
  operations: readonly ApiOperation[];
  schemes: ReadonlyMap<string, ApiScheme>;
  /** Document that schema references are resolved against. */
  root: unknown;
  findings: readonly Finding[];
};
