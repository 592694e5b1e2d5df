import type { Fault, ForeignResponse, Step } from './foreign-mcp-server.ts';

/** Replaces the response to one step. */
export const replaceResponse =
  (
    step: Step,
    change: (defaultResponse: ForeignResponse, request: Parameters<Fault>[0]) => ForeignResponse | undefined,
  ): Fault =>
  (request, defaultResponse) =>
    request.step === step ? change(defaultResponse, request) : undefined;

/** Replaces fields of the JSON response to one step. */
export const replaceFields = (step: Step, change: { [name: string]: unknown }) =>
  replaceResponse(step, (defaultResponse) => ({
    ...defaultResponse,
    body: { ...(defaultResponse.body as object), ...change },
  }));

/** Replaces the response to one MCP method, after the request was authorized. */
export const replaceMethodResponse = (name: string, change: (defaultResponse: ForeignResponse) => ForeignResponse) =>
  replaceResponse('mcp', (defaultResponse, { message }) =>
    message.method === name && defaultResponse.status < 300 ? change(defaultResponse) : undefined,
  );

export const replaceMethodResult = (name: string, value: unknown) =>
  replaceMethodResponse(name, (defaultResponse) => ({
    ...defaultResponse,
    body: { ...(defaultResponse.body as object), result: value },
  }));
