import { Select, SimpleGrid, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { JsonObject } from '../../answers.ts';
import { api } from '../../api.ts';
import { queryKeys } from '../../query-keys.ts';
import { Confirm } from '../../ui/actions/confirm.tsx';
import { isSame, refusalOf } from '../../ui/actions/refusal.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { CodeBlock } from '../../ui/text/code-block.tsx';
import { visible } from '../../ui/text/visible.ts';
import { type Config, isObject, isReadOnly, listOf, textOf, viewsOf } from '../config.ts';
import { useShownServer } from '../server-page.tsx';
import { argumentsOf, useArguments } from './form/arguments.ts';
import { TryForm } from './form/try-form.tsx';
import { Outgoing, usePreview } from './outgoing.tsx';
import { type Replayed, ReplayNote } from './replay.tsx';
import { TriedResult } from './result/tried-result.tsx';
import { SaveTokens } from './save-tokens/save-tokens.tsx';

/** Tool and request body at the time of a call. */
type Asked = { tool: JsonObject; body: JsonObject };

type Props = {
  tool: JsonObject;
  names: string[];
  replayed: Replayed | undefined;
  onChoose: (name: string) => void;
};

/** One tool: its arguments, the resulting request, and the result. */
export function TryTool({ tool, names, replayed, onChoose }: Props) {
  const { server, config } = useShownServer();
  const [token, setToken] = useState('');
  const name = textOf(tool.name);
  const views = viewsOfTool(config, tool);
  const [chosenView, setView] = useState(replayed?.view);
  const at = views.find((one) => one.name === chosenView);
  const view = at?.name;
  const args = argumentsOf(tool.input_schema).filter((argument) => !at?.fixed.includes(argument.name));
  const { typed, values, hidden, leaveOutHidden, type } = useArguments(args, replayed?.args);
  const asked: Asked = {
    tool,
    body: { arguments: values, view, token: token || undefined },
  };
  const call = useAction({
    run: ({ body }: Asked) => api('callTool', { slug: server.slug, tool: name, ...body }),
    refresh: [['calls'], queryKeys.activity],
  });
  const missing = args.filter((argument) => argument.isRequired && values[argument.name] === undefined);
  const isMissing = missing.length > 0;
  const preview = usePreview({ slug: server.slug, version: server.version, view, tool: name, values, isMissing });
  const [isAsked, setAsked] = useState(false);
  const [isInDoubt, setInDoubt] = useState(false);
  const problems = [
    ...missing.map((argument) => ({ path: `arguments.${argument.name}`, message: 'is missing' })),
    ...preview.problems,
  ];
  const refusal = refusalOf(call, asked);
  const ask = () => {
    setAsked(true);
    if (problems.length > 0 && (!preview.isBehind || isMissing)) return;
    if (!isReadOnly(tool)) setInDoubt(true);
    else call.mutate(asked);
  };
  const isForwarding = server.access !== 'api_key' && config.authentication !== undefined;
  return (
    <>
      {replayed && <ReplayNote replayed={replayed} hidden={hidden} onLeaveOut={leaveOutHidden} />}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Stack gap="md" miw={0}>
          <Choices names={names} name={name} onChoose={onChoose} views={views} view={view} onView={setView} />
          <TryForm
            description={textOf(tool.description)}
            args={args}
            typed={typed}
            problems={[...(isAsked ? problems : []), ...refusal.problems]}
            failure={refusal.failure}
            isCalling={call.isPending}
            isSentByEnter={isReadOnly(tool)}
            token={isForwarding || server.access === 'oauth' || server.access === 'passthrough' ? token : undefined}
            onToken={setToken}
            onType={type}
            onCall={ask}
          />
        </Stack>
        <Stack gap="md" miw={0}>
          <Outgoing preview={preview} slug={server.slug} view={view} tool={name} args={values} />
        </Stack>
      </SimpleGrid>
      {call.data && call.variables && (
        <TriedResult
          tried={call.data}
          tool={call.variables.tool}
          slug={server.slug}
          isOfOthers={!isSame(call.variables, asked)}
        />
      )}
      <SaveTokens tool={name} />
      <ConfirmWrite
        tool={tool}
        preview={preview}
        isAgain={replayed !== undefined}
        isAsked={isInDoubt}
        onClose={() => setInDoubt(false)}
        onConfirm={() => call.mutate(asked)}
      />
    </>
  );
}

/** View that contains a tool, and the names of the arguments it fixes. */
type ViewOfTool = { name: string; fixed: string[] };

/** Returns the views of a stored configuration that contain this tool, by the service's rules. */
function viewsOfTool(config: Config, tool: JsonObject): ViewOfTool[] {
  return Object.entries(viewsOf(config)).flatMap(([name, view]) => {
    if (!isObject(view) || (view.read_only === true && !isReadOnly(tool))) return [];
    const entry = listOf(view.tools).find((one) => (isObject(one) ? one.name : one) === textOf(tool.name));
    const hasEvery = view.tools === undefined && view.tags === undefined;
    const hasTag = listOf(view.tags).some((tag) => listOf(tool.tags).includes(tag));
    if (entry === undefined && !hasEvery && !hasTag) return [];
    return [{ name, fixed: isObject(entry) && isObject(entry.arguments) ? Object.keys(entry.arguments) : [] }];
  });
}

type ChoicesProps = Pick<Props, 'names' | 'onChoose'> & {
  name: string;
  views: readonly ViewOfTool[];
  view: string | undefined;
  onView: (view: string | undefined) => void;
};

/** Choice of the tool and its endpoint. It is outside the form, so that Enter in the search selects and never calls. */
function Choices({ names, name, onChoose, views, view, onView }: ChoicesProps) {
  const places = views.map((one) => ({ value: one.name, label: `View ${visible(one.name)}` }));
  return (
    <>
      <Select
        label="Tool"
        data={names.map((value) => ({ value, label: visible(value) }))}
        value={name}
        onChange={(next) => next && onChoose(next)}
        allowDeselect={false}
        searchable={names.length > 8}
        selectFirstOptionOnChange
        className="th-mono"
      />
      {views.length > 0 && (
        <Select
          label="Endpoint"
          data={[{ value: '', label: 'Server' }, ...places]}
          value={view ?? ''}
          onChange={(next) => onView(next || undefined)}
          allowDeselect={false}
        />
      )}
    </>
  );
}

type ConfirmWriteProps = {
  tool: JsonObject;
  preview: ReturnType<typeof usePreview>;
  isAgain: boolean;
  isAsked: boolean;
  onClose: () => void;
  onConfirm: () => void;
};

/** Confirmation before calling a tool that is not read-only. */
function ConfirmWrite({ tool, preview, isAgain, isAsked, onClose, onConfirm }: ConfirmWriteProps) {
  const known = preview.isBehind ? undefined : preview.request?.request;
  // The configured URL, until the rendered one is known.
  const shown = known ?? { method: textOf(tool.method), url: textOf(tool.url) };
  return (
    <Confirm
      opened={isAsked}
      title={isAgain ? 'Send this call again?' : 'Send this call?'}
      action={isAgain ? 'Send again' : 'Send'}
      isPending={false}
      error={undefined}
      onClose={onClose}
      onConfirm={() => {
        onClose();
        onConfirm();
      }}
    >
      <Text size="sm">
        {visible(textOf(tool.name))} is not read-only.{' '}
        {isAgain
          ? 'The changes that the call made at the API may be repeated.'
          : 'The call may change data at the API.'}
      </Text>
      <CodeBlock code={`${shown.method} ${shown.url}`} label="request to send" />
    </Confirm>
  );
}
