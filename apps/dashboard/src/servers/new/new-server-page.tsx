import { defaultMaxResponseTokens } from '@toolhost/tool-config/read-more';
import { type ReactNode, useState } from 'react';
import { useNavigate, useSearchParams } from 'react-router';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import type { Guide } from '../../guides.ts';
import { queryKeys } from '../../query-keys.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { PageHeader } from '../../ui/page-header.tsx';
import { Loading } from '../../ui/states/loading.tsx';
import { ViewerNote } from '../../ui/states/viewer-note.tsx';
import { Hint } from '../../ui/text/hint.tsx';
import { asInput, asText, type Config, newTool } from '../config.ts';
import { Editor } from '../editor/editor.tsx';
import { createEditorStore } from '../editor/model/editor-store.ts';
import { useFreeSlug } from '../use-free-slug.ts';
import { StartChoices } from './start-choices.tsx';

type PageProps = {
  title: string;
  text: string;
  guide?: Guide;
  back?: { to: string; label: string };
  children: ReactNode;
};

/** Page for starting a new server. Viewers see a note instead. */
export function NewPage({
  back = { to: '/servers/new', label: 'All starting points' },
  children,
  ...header
}: PageProps) {
  return (
    <>
      <PageHeader {...header} back={back} />
      {useCanEdit() ? children : <ViewerNote>Only editors and owners can create servers.</ViewerNote>}
    </>
  );
}

const startConfigs = new Map<string, () => Config>([
  ['form', () => ({ name: '', slug: '', max_response_tokens: defaultMaxResponseTokens, tools: [newTool] })],
  ['json', () => ({})],
]);

export function NewServerPage() {
  const from = useSearchParams()[0].get('from') ?? '';
  const createConfig = startConfigs.get(from);
  if (createConfig)
    return (
      <NewPage title="New server" guide="docs/tutorial.md" text="Nothing is stored until you create it.">
        <NewServer key={from} initial={createConfig()} startsInJson={from === 'json'} />
      </NewPage>
    );
  return (
    <NewPage
      title="New server"
      guide="docs/tutorial.md"
      text="Choose a starting point. You can change everything later."
      back={{ to: '/servers', label: 'Servers' }}
    >
      <div className="th-card">
        <StartChoices />
      </div>
    </NewPage>
  );
}

type NewServerProps = { initial: Config; startsInJson?: boolean };

/** Form for a new server. If the slug of the initial configuration is taken, it gets another slug and name. */
export function NewServer({ initial, ...props }: NewServerProps) {
  const { freeSlug, isLoading } = useFreeSlug(asText(initial.slug));
  if (isLoading) return <Loading />;
  const numbered = freeSlug && { name: asText(initial.name) + freeSlug.nameSuffix, slug: freeSlug.slug };
  return (
    <>
      {freeSlug?.note && <Hint mb="md">{freeSlug.note}</Hint>}
      <NewServerForm initial={{ ...initial, ...numbered }} {...props} />
    </>
  );
}

function NewServerForm({ initial, startsInJson = false }: NewServerProps) {
  const navigate = useNavigate();
  const [store] = useState(() => createEditorStore({ initial, isNew: true, startsEmpty: startsInJson }));
  const create = useAction({
    run: (config: Config) => api('createMcpServer', asInput(config)),
    refresh: [queryKeys.servers, queryKeys.activity],
    onSuccess: ({ server }) => navigate(`/servers/${server.slug}/connect`, { state: { isNew: true } }),
  });
  return <Editor store={store} isNew startsInJson={startsInJson} saving={create} />;
}
