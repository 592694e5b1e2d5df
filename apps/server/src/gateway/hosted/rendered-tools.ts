import type { Problem } from '@toolhost/errors/errors';
import { checkStoredPatternLength } from '@toolhost/json-schema/schema-rules';
import { listCredentials } from '@toolhost/tool-config/authentication';
import { toJsonSchema, withFixedArguments } from '@toolhost/tool-config/input-schema';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { findLengthProblems } from '@toolhost/tool-config/server-rules';
import { createToolResolver, createUrlResolver, interpolateVariablesIn } from '@toolhost/tool-config/server-wide';
import {
  checkInterpolation,
  checkTotalInterpolation,
  findHeaderLengthProblems,
  type InterpolationSize,
  measureInterpolation,
} from '@toolhost/tool-config/sizes';
import type { Tool } from '@toolhost/tool-config/tool';
import { findToolLengthProblems } from '@toolhost/tool-config/tool-rules';

/**
 * A tool that includes all server-wide configuration. A configuration that was stored before limits existed may exceed
 * them. Only the URL of such a tool is rendered, and each of its calls is refused.
 */
export type RenderedTool = { tool: Tool; configError: string | undefined };

export type RenderedTools = {
  renderForServer(tool: Tool): RenderedTool;
  /** Renders `tool` for a view that fixes these arguments. Rendered text is shared with the other views. */
  renderForView(tool: Tool, fixedArguments: Readonly<Record<string, unknown>>): RenderedTool;
  /** Sizes of the interpolated variables, for the size of the cache. */
  interpolation: InterpolationSize;
};

export function createRenderedTools(config: ServerConfig): RenderedTools {
  const { variables } = config;
  const interpolation = measureInterpolation(config);
  const serverError = getServerError(config, checkTotalInterpolation(interpolation));
  const resolveTool = serverError === undefined ? createToolResolver(config) : undefined;
  const renderUrl = createUrlResolver(config);
  const refuseTool = (tool: Tool, configError: string) => ({
    tool: { ...tool, url: renderUrl(tool.url), headers: {} },
    configError,
  });
  const cacheForViews = new Map<string, RenderedTool>();
  let byName: ReadonlyMap<string, Tool> | undefined;

  function renderForServer(tool: Tool): RenderedTool {
    const configError =
      serverError ?? formatProblem(findToolLengthProblems(tool, variables)[0] ?? findPatternProblem(tool));
    return resolveTool && configError === undefined
      ? { tool: resolveTool(tool), configError }
      : refuseTool(tool, configError ?? '');
  }

  function renderOnce(name: string): RenderedTool {
    byName ??= new Map(config.tools.map((tool) => [tool.name, tool]));
    const rendered = cacheForViews.get(name) ?? renderForServer(byName.get(name) as Tool);
    cacheForViews.set(name, rendered);
    return rendered;
  }

  return {
    renderForServer,
    renderForView(tool, fixedArguments) {
      const { tool: renderedTool, configError: toolError } = renderOnce(tool.name);
      const problems = Object.values(fixedArguments).map((value) => checkInterpolation(value, variables));
      const configError = toolError ?? problems.find((problem) => problem !== undefined);
      if (configError !== undefined) return refuseTool(tool, configError);
      const { title, description } = tool;
      const renderedArguments = interpolateVariablesIn(fixedArguments, variables) as Record<string, unknown>;
      const input_schema = withFixedArguments(renderedTool.input_schema, renderedArguments);
      return {
        tool: { ...renderedTool, ...(title !== undefined && { title }), description, input_schema },
        configError,
      };
    },
    interpolation: serverError === undefined ? interpolation : { ...interpolation, elsewhere: 0 },
  };
}

/** Returns the reason why no tool of a server can be rendered, or undefined if they can. */
function getServerError(config: ServerConfig, interpolationProblem: string | undefined): string | undefined {
  const { headers, variables } = config;
  if (interpolationProblem !== undefined) return `the server configuration ${interpolationProblem}`;
  const credentialProblems = listCredentials(config).flatMap(({ credential, path }) =>
    findLengthProblems(credential, variables).map((problem) => ({ ...problem, path: `${path}.${problem.path}` })),
  );
  return formatProblem(credentialProblems[0] ?? findHeaderLengthProblems(headers, variables)[0]);
}

function findPatternProblem({ input_schema, output_schema }: Tool): Problem | undefined {
  const schemaProblem = checkStoredPatternLength(toJsonSchema(input_schema));
  if (schemaProblem) return { ...schemaProblem, path: 'input_schema' };
  const outputProblem = output_schema && checkStoredPatternLength(output_schema);
  return outputProblem && { ...outputProblem, path: 'output_schema' };
}

function formatProblem(problem: Problem | undefined): string | undefined {
  return problem && `${problem.path} ${problem.message}`;
}
