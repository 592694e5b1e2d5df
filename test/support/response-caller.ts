import { getErrorText, getResultText, type OneToolFixture } from './one-tool.ts';
import type { Json, ToolCallResult } from './toolhost/toolhost.ts';
import type { CannedResponse } from './upstreams/recording-upstream.ts';

type Headers = NonNullable<CannedResponse['headers']>;
type CallParameters = [response: CannedResponse, tool?: Json, server?: Json];

/** Calls new tools whose upstream sends a given response. */
export type ResponseCaller = {
  /** Creates a server whose tool gets the response. Returns the slug. */
  serve(...parameters: CallParameters): Promise<string>;
  call(...parameters: CallParameters): Promise<ToolCallResult>;
  /** Returns the first text of the result. */
  getText(...parameters: CallParameters): Promise<string>;
  /** Returns the text of a result that must be an error. */
  getError(...parameters: CallParameters): Promise<string>;
};

export function createResponseCaller(fixture: OneToolFixture): ResponseCaller {
  let routeCount = 0;
  const serve: ResponseCaller['serve'] = (response, tool = {}, server) => {
    const path = `/response-${++routeCount}`;
    fixture.upstream.on(`${String(tool.method ?? 'GET')} ${path}`, () => response);
    return fixture.createToolServer({ ...tool, url: path }, server);
  };
  const call: ResponseCaller['call'] = async (...parameters) => fixture.call(await serve(...parameters));
  return {
    serve,
    call,
    getText: async (...parameters) => getResultText(await call(...parameters)),
    getError: async (...parameters) => getErrorText(await call(...parameters)),
  };
}

/** Builds a response with a content type, if one is given. */
export function buildResponse(type: string | undefined, body: string | Buffer, more: Headers = {}): CannedResponse {
  return { headers: { ...(type !== undefined && { 'content-type': type }), ...more }, body };
}

export function buildJsonResponse(body: string | Buffer): CannedResponse {
  return buildResponse('application/json', body);
}
