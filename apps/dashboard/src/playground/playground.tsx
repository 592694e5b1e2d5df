import { Button, Group, Select, Stack, Text, Textarea } from '@mantine/core';
import { IconPlayerStop, IconSend } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import { useSearchParams } from 'react-router';
import { useCanEdit } from '../frame/session.ts';
import { needsCallerToken } from '../servers/access.ts';
import { getViews } from '../servers/config.ts';
import { MissingValuesAlert } from '../servers/own-values.tsx';
import { useCurrentServer } from '../servers/server-page.tsx';
import { Confirm } from '../ui/actions/confirm.tsx';
import { selectsText } from '../ui/actions/selects-text.ts';
import { Rows } from '../ui/rows.tsx';
import { SecretInput } from '../ui/secret-input.tsx';
import { Section } from '../ui/section.tsx';
import { ViewerNote } from '../ui/states/viewer-note.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { formatTarget, getTotals, isSameTarget, type Run, type Target } from './conversation.ts';
import { CallConfirmation, ExchangeView } from './exchange-view.tsx';
import { ModelChoice, useModel } from './model-choice.tsx';
import { useConversation } from './use-conversation.ts';

/** Conversation with a model that can use the server's tools. */
export function Playground() {
  const { server } = useCurrentServer();
  const [search] = useSearchParams();
  const view = search.get('view') ?? undefined;
  const [target, setTarget] = useState<Target>(view === undefined ? {} : { view });
  const [token, setToken] = useState('');
  const model = useModel();
  const conversation = useConversation({ slug: server.slug, model: model.request, modelName: model.name, token });
  return (
    <div className="th-playground">
      <Section title="Playground" isTitleHidden>
        <Stack gap="lg">
          <MissingValuesAlert />
          <Conversation conversation={conversation} />
          <Composer conversation={conversation} target={target} model={model} />
        </Stack>
      </Section>
      <Stack gap="md" miw={0}>
        <Section title="Model" text="Your questions, the tools, and their results are sent to its host.">
          <ModelChoice model={model} />
        </Section>
        <Section title="Tools">
          <Stack gap="sm">
            <TargetChoice target={target} onChange={setTarget} />
            {needsCallerToken(server) && (
              <SecretInput
                label="API token"
                description="This server forwards the caller's token to the API. It is used for these calls and not stored."
                value={token}
                onChange={(event) => setToken(event.currentTarget.value)}
              />
            )}
          </Stack>
        </Section>
      </Stack>
      {conversation.runs.length > 1 && (
        <Runs runs={conversation.runs} shown={conversation.shown} onShow={conversation.show} />
      )}
      <Confirm
        opened={conversation.pendingCall !== undefined}
        title="Allow this call?"
        action="Call tool"
        onClose={() => conversation.pendingCall?.decide(false)}
        onConfirm={() => conversation.pendingCall?.decide(true)}
      >
        {conversation.pendingCall && <CallConfirmation toolCall={conversation.pendingCall.toolCall} />}
      </Confirm>
    </div>
  );
}

type ConversationState = ReturnType<typeof useConversation>;

function Conversation({ conversation: { shown, isRunning } }: { conversation: ConversationState }) {
  const endRef = useRef<HTMLDivElement>(null);
  const steps = shown?.exchanges.at(-1)?.steps.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls to each step of a reply when it starts
  useEffect(() => {
    if (isRunning) endRef.current?.scrollIntoView({ block: 'nearest' });
  }, [isRunning, steps]);
  if (!shown) return null;
  return (
    <Stack gap="lg" role="log" aria-label="Conversation" aria-busy={isRunning}>
      <Text c="dimmed">{toVisible(`${formatTarget(shown.target)} · ${shown.model}`)}</Text>
      {shown.exchanges.map((exchange, index) => (
        <ExchangeView
          // biome-ignore lint/suspicious/noArrayIndexKey: an exchange has no identity except its index
          key={`${shown.id} ${index}`}
          exchange={exchange}
          isRunning={isRunning && index === shown.exchanges.length - 1}
        />
      ))}
      <div ref={endRef} />
    </Stack>
  );
}

type ComposerProps = { conversation: ConversationState; target: Target; model: ReturnType<typeof useModel> };

/** Input for a question. Enter sends it, Shift+Enter starts a new line. */
function Composer({ conversation, target, model }: ComposerProps) {
  const [question, setQuestion] = useState('');
  const canCall = useCanEdit();
  const { shown, isRunning } = conversation;
  if (!canCall) return <ViewerNote>Members can ask a model.</ViewerNote>;
  const hasOtherTarget = shown && (!isSameTarget(shown.target, target) || shown.model !== model.name);
  if (hasOtherTarget && !isRunning)
    return (
      <Group justify="flex-end" gap="sm" className="th-composer">
        <Text c="dimmed" flex="1 1 14rem">
          {toVisible(`Now selected: ${formatTarget(target)} · ${model.name}`)}
        </Text>
        <Button variant="default" onClick={conversation.startNew}>
          New conversation
        </Button>
        <Button onClick={() => conversation.replay(shown, target)} disabled={model.name === ''}>
          Repeat questions
        </Button>
      </Group>
    );
  const isReady = question.trim() !== '' && model.name !== '' && !isRunning;
  const send = () => {
    if (!isReady) return;
    conversation.ask(target, question.trim());
    setQuestion('');
  };
  return (
    <Stack gap="sm" maw={shown ? undefined : 640} {...(shown && { className: 'th-composer' })}>
      <Textarea
        label="Question"
        description={!shown && 'You confirm each call that may change data.'}
        placeholder="Which orders are late?"
        value={question}
        onChange={(event) => setQuestion(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          send();
        }}
        autosize
        minRows={shown ? 1 : 3}
        maxRows={6}
        maxLength={20_000}
      />
      <Group justify="flex-end" gap="sm">
        {model.name === '' && <Text c="dimmed">Enter a model name first.</Text>}
        {shown && !isRunning && (
          <Button variant="default" onClick={conversation.startNew}>
            New conversation
          </Button>
        )}
        {isRunning ? (
          <Button variant="default" leftSection={<IconPlayerStop size={16} />} onClick={conversation.stop}>
            Stop
          </Button>
        ) : (
          <Button onClick={send} disabled={!isReady} leftSection={<IconSend size={16} />}>
            Ask
          </Button>
        )}
      </Group>
    </Stack>
  );
}

type RunsProps = { runs: readonly Run[]; shown: Run | undefined; onShow: (id: number) => void };

/** Conversations since the page was opened, to compare their cost. */
function Runs({ runs, shown, onShow }: RunsProps) {
  const rows = runs.map((run) => ({ run, ...getTotals(run) }));
  return (
    <Section title="Conversations" text="Kept until you leave this page." isFlush>
      <Rows
        label="Conversations"
        rows={rows}
        getKey={({ run }) => String(run.id)}
        columns={[
          {
            label: 'Target',
            cell: ({ run }) => (
              <Button
                variant={run === shown ? 'light' : 'subtle'}
                size="compact-sm"
                aria-pressed={run === shown}
                onClick={() => onShow(run.id)}
              >
                {toVisible(`${run.id}. ${formatTarget(run.target)} · ${run.model}`)}
              </Button>
            ),
          },
          { label: 'Replies', narrow: 'hidden', isEndAligned: true, cell: ({ replies }) => replies },
          {
            label: 'Calls',
            isEndAligned: true,
            cell: ({ calls, failed }) => (failed === 0 ? calls : `${calls}, ${failed} failed`),
          },
          { label: 'Input tokens', isEndAligned: true, cell: ({ input }) => input.toLocaleString('en') },
          { label: 'Output tokens', isEndAligned: true, cell: ({ output }) => output.toLocaleString('en') },
          { label: 'Duration', narrow: 'hidden', isEndAligned: true, cell: ({ ms }) => `${(ms / 1000).toFixed(1)} s` },
        ]}
      />
    </Section>
  );
}

/** Maximum versions to choose from: the default number that a workspace retains. */
const maxVersions = 50;

/** Choice of the tools that the model gets, and how it gets them. */
function TargetChoice({ target, onChange }: { target: Target; onChange: (target: Target) => void }) {
  const { server, config } = useCurrentServer();
  const views = Object.keys(getViews(config));
  const olderVersions = Array.from(
    { length: Math.min(maxVersions, server.version - 1) },
    (_, i) => server.version - 1 - i,
  );
  const { view, mode, version } = target;
  const change = (next: Target) => onChange({ ...target, ...next });
  return (
    <Stack gap="sm">
      {views.length > 0 && (
        <Select
          label="Tools from"
          data={[
            { value: '', label: 'Server' },
            ...views.map((name) => ({ value: name, label: `View ${toVisible(name)}` })),
          ]}
          value={view ?? ''}
          onChange={(next) => change({ view: next || undefined })}
        />
      )}
      <Select
        label="Tool delivery"
        data={[
          { value: '', label: 'Same as agents' },
          { value: 'list', label: 'List all tools' },
          { value: 'search', label: 'Search for tools' },
        ]}
        value={mode ?? ''}
        onChange={(next) => change({ mode: (next || undefined) as Target['mode'] })}
      />
      {olderVersions.length > 0 && (
        <Select
          label="Version"
          data={[
            { value: '', label: `${server.version} (current)` },
            ...olderVersions.map((number) => ({ value: String(number), label: String(number) })),
          ]}
          value={version === undefined ? '' : String(version)}
          onChange={(next) => change({ version: next ? Number(next) : undefined })}
          searchable={olderVersions.length > 10}
          {...selectsText}
        />
      )}
    </Stack>
  );
}
