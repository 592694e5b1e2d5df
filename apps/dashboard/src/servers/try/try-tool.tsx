import { Select, SimpleGrid, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { api } from '../../api.ts';
import type { JsonObject } from '../../api-types.ts';
import { queryKeys } from '../../query-keys.ts';
import { Confirm } from '../../ui/actions/confirm.tsx';
import { getFormErrors, isEqual } from '../../ui/actions/form-errors.ts';
import { selectsText } from '../../ui/actions/selects-text.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { CodeBlock } from '../../ui/text/code-block.tsx';
import { toVisible } from '../../ui/text/visible.ts';
import { needsCallerToken } from '../access.ts';
import { asList, asText, type Config, getViews, isObject, isReadOnly } from '../config.ts';
import { useCurrentServer } from '../server-page.tsx';
import { findMissing, getArguments, useArguments } from './form/arguments.ts';
import { TryForm } from './form/try-form.tsx';
import { OutgoingRequest, usePreview } from './outgoing-request.tsx';
import { type ReplayedCall, ReplayNote } from './replay.tsx';
import { ToolResult } from './result/tool-result.tsx';
import { SaveTokens } from './save-tokens/save-tokens.tsx';

/** Tool and request body at the time of a call. */
type CallRequest = { tool: JsonObject; body: JsonObject };

type Props = {
  tool: JsonObject;
  names: string[];
  replayed: ReplayedCall | undefined;
  onChoose: (name: string) => void;
};

/** One tool: its arguments, the resulting request, and the result. */
export function TryTool({ tool, names, replayed, onChoose }: Props) {
  const { server, config } = useCurrentServer();
  const [token, setToken] = useState(server.example_token ?? '');
  const name = asText(tool.name);
  const views = getToolViews(config, tool);
  const [chosenView, setView] = useState(replayed?.view);
  const selectedView = views.find((candidate) => candidate.name === chosenView);
  const view = selectedView?.name;
  const declared = getArguments(tool.input_schema, selectedView?.fixed);
  const { args, inputs, values, hiddenNames, removeHidden, setInput } = useArguments(declared, replayed?.args);
  const request: CallRequest = {
    tool,
    body: { arguments: values, view, token: token || undefined },
  };
  const call = useAction({
    run: ({ body }: CallRequest) => api('callTool', { slug: server.slug, tool: name, ...body }),
    refresh: [['calls'], queryKeys.activity],
  });
  const missing = findMissing(args, values);
  const isMissing = missing.length > 0;
  const preview = usePreview({ slug: server.slug, version: server.version, view, tool: name, values, isMissing });
  const [isSubmitted, setSubmitted] = useState(false);
  const [isConfirming, setConfirming] = useState(false);
  const problems = [
    ...missing.map((path) => ({ path: `arguments.${path}`, message: 'is missing' })),
    ...preview.problems,
  ];
  const formErrors = getFormErrors(call, request);
  const submit = () => {
    setSubmitted(true);
    if (problems.length > 0 && (!preview.isStale || isMissing)) return;
    if (!isReadOnly(tool)) setConfirming(true);
    else call.mutate(request);
  };
  return (
    <>
      {replayed && <ReplayNote replayed={replayed} hiddenNames={hiddenNames} onRemove={removeHidden} />}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Stack gap="md" miw={0}>
          <Choices names={names} name={name} onChoose={onChoose} views={views} view={view} onView={setView} />
          <TryForm
            description={asText(tool.description)}
            args={args}
            inputs={inputs}
            problems={[...(isSubmitted ? problems : []), ...formErrors.problems]}
            failure={formErrors.failure}
            isCalling={call.isPending}
            shouldSubmitOnEnter={isReadOnly(tool)}
            token={needsCallerToken(server) ? token : undefined}
            onToken={setToken}
            onInput={setInput}
            onCall={submit}
          />
        </Stack>
        <Stack gap="md" miw={0}>
          <OutgoingRequest preview={preview} slug={server.slug} view={view} tool={name} args={values} />
        </Stack>
      </SimpleGrid>
      {call.data && call.variables && (
        <ToolResult
          result={call.data}
          tool={call.variables.tool}
          slug={server.slug}
          isStale={!isEqual(call.variables, request)}
        />
      )}
      <SaveTokens tool={name} />
      <ConfirmWrite
        tool={tool}
        preview={preview}
        isReplay={replayed !== undefined}
        isOpen={isConfirming}
        onClose={() => setConfirming(false)}
        onConfirm={() => call.mutate(request)}
      />
    </>
  );
}

/** View that contains a tool, and the names of the arguments it fixes. */
type ToolView = { name: string; fixed: string[] };

/** Returns the views of a stored configuration that contain this tool, by the service's rules. */
function getToolViews(config: Config, tool: JsonObject): ToolView[] {
  return Object.entries(getViews(config)).flatMap(([name, view]) => {
    if (!isObject(view) || (view.read_only === true && !isReadOnly(tool))) return [];
    const entry = asList(view.tools).find((item) => (isObject(item) ? item.name : item) === asText(tool.name));
    const hasAllTools = view.tools === undefined && view.tags === undefined;
    const hasTag = asList(view.tags).some((tag) => asList(tool.tags).includes(tag));
    if (entry === undefined && !hasAllTools && !hasTag) return [];
    return [{ name, fixed: isObject(entry) && isObject(entry.arguments) ? Object.keys(entry.arguments) : [] }];
  });
}

type ChoicesProps = Pick<Props, 'names' | 'onChoose'> & {
  name: string;
  views: readonly ToolView[];
  view: string | undefined;
  onView: (view: string | undefined) => void;
};

/** Choice of the tool and its endpoint. It is outside the form, so that Enter in the search selects and never calls. */
function Choices({ names, name, onChoose, views, view, onView }: ChoicesProps) {
  const viewOptions = views.map((toolView) => ({ value: toolView.name, label: `View ${toVisible(toolView.name)}` }));
  return (
    <>
      <Select
        label="Tool"
        data={names.map((value) => ({ value, label: toVisible(value) }))}
        value={name}
        onChange={(next) => next && onChoose(next)}
        searchable={names.length > 8}
        selectFirstOptionOnChange
        {...selectsText}
        className="th-mono"
      />
      {views.length > 0 && (
        <Select
          label="Endpoint"
          data={[{ value: '', label: 'Server' }, ...viewOptions]}
          value={view ?? ''}
          onChange={(next) => onView(next || undefined)}
        />
      )}
    </>
  );
}

type ConfirmWriteProps = {
  tool: JsonObject;
  preview: ReturnType<typeof usePreview>;
  isReplay: boolean;
  isOpen: boolean;
  onClose: () => void;
  onConfirm: () => void;
};

/** Confirmation before calling a tool that is not read-only. */
function ConfirmWrite({ tool, preview, isReplay, isOpen, onClose, onConfirm }: ConfirmWriteProps) {
  const renderedRequest = preview.isStale ? undefined : preview.request?.request;
  // The configured URL, until the rendered one is known.
  const shownRequest = renderedRequest ?? { method: asText(tool.method), url: asText(tool.url) };
  return (
    <Confirm
      opened={isOpen}
      title={isReplay ? 'Send this call again?' : 'Send this call?'}
      action={isReplay ? 'Send again' : 'Send'}
      onClose={onClose}
      onConfirm={() => {
        onClose();
        onConfirm();
      }}
    >
      <Text>
        {toVisible(asText(tool.name))} is not read-only.{' '}
        {isReplay
          ? 'The changes that the call made at the API may be repeated.'
          : 'The call may change data at the API.'}
      </Text>
      <CodeBlock code={`${shownRequest.method} ${shownRequest.url}`} label="request to send" />
    </Confirm>
  );
}
