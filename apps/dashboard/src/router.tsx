import type { ComponentType } from 'react';
import { createBrowserRouter, type LoaderFunctionArgs, type RouteObject, redirect } from 'react-router';
import { basePath, loginCheckPath } from './base-path.ts';
import { Frame } from './frame/frame.tsx';
import { RouteFailure } from './frame/route-failure.tsx';
import { HomePage } from './home/home-page.tsx';
import { LoadingPage } from './ui/states/loading.tsx';

/** Returns a route whose page is loaded when it is opened. */
function lazyRoute<Name extends string>(load: () => Promise<Record<Name, ComponentType>>, name: Name) {
  return { lazy: async () => ({ Component: (await load())[name] }) };
}

/** Former paths of a server's pages, which emails and bookmarks link to, and their current paths. */
const movedPaths = {
  playground: 'try/playground',
  secrets: 'settings/secrets',
  logins: 'settings/logins',
  import: 'settings/import',
  versions: 'settings/versions',
  options: 'settings/limits',
};

const serverPages: RouteObject[] = [
  { index: true, ...lazyRoute(() => import('./servers/home/server-home.tsx'), 'ServerHome') },
  {
    // Both pages share one editor, so that unsaved input is available in either.
    ...lazyRoute(() => import('./servers/editor/server-editor.tsx'), 'ServerEditor'),
    children: [{ path: 'tools' }, { path: 'settings' }],
  },
  {
    path: 'try',
    ...lazyRoute(() => import('./servers/try/try-page.tsx'), 'TryPage'),
    children: [
      { index: true, ...lazyRoute(() => import('./servers/try/try-form-page.tsx'), 'TryFormPage') },
      { path: 'playground', ...lazyRoute(() => import('./playground/playground.tsx'), 'Playground') },
    ],
  },
  { path: 'calls', ...lazyRoute(() => import('./calls/calls-page.tsx'), 'CallBrowser') },
  { path: 'connect', ...lazyRoute(() => import('./servers/connect/connect-tab.tsx'), 'ConnectTab') },
  { path: 'settings/logins', ...lazyRoute(() => import('./servers/settings/logins-section.tsx'), 'LoginsSection') },
  { path: 'settings/secrets', ...lazyRoute(() => import('./servers/settings/secrets-section.tsx'), 'SecretsSection') },
  { path: 'settings/import', ...lazyRoute(() => import('./servers/reimport/import-tab.tsx'), 'ImportTab') },
  {
    path: 'settings/versions',
    ...lazyRoute(() => import('./servers/settings/versions-section.tsx'), 'VersionsSection'),
  },
  { path: 'settings/limits', ...lazyRoute(() => import('./servers/settings/limits-section.tsx'), 'LimitsSection') },
  { path: 'settings/capture', ...lazyRoute(() => import('./servers/settings/capture-section.tsx'), 'CaptureSection') },
  { path: 'settings/delete', ...lazyRoute(() => import('./servers/settings/delete-section.tsx'), 'DeleteSection') },
  ...Object.entries(movedPaths).map(([path, target]) => ({
    path,
    loader: ({ params, request }: LoaderFunctionArgs) =>
      redirect(`/servers/${params.slug}/${target}${new URL(request.url).search}`),
  })),
];

const pages: RouteObject[] = [
  { index: true, Component: HomePage },
  { path: 'servers', ...lazyRoute(() => import('./servers/list/servers-page.tsx'), 'ServersPage') },
  { path: 'servers/new', ...lazyRoute(() => import('./servers/new/new-server-page.tsx'), 'NewServerPage') },
  { path: 'servers/new/gallery', ...lazyRoute(() => import('./servers/gallery/gallery-page.tsx'), 'GalleryPage') },
  { path: 'servers/new/import', ...lazyRoute(() => import('./servers/import/import-page.tsx'), 'ImportPage') },
  {
    path: 'servers/:slug',
    ...lazyRoute(() => import('./servers/server-page.tsx'), 'ServerPage'),
    children: serverPages,
  },
  { path: 'keys', ...lazyRoute(() => import('./keys/keys-page.tsx'), 'KeysPage') },
  { path: 'calls', ...lazyRoute(() => import('./calls/calls-page.tsx'), 'CallsPage') },
  { path: 'audit', ...lazyRoute(() => import('./audit/audit-page.tsx'), 'AuditPage') },
  { path: 'usage', ...lazyRoute(() => import('./usage/usage-page.tsx'), 'UsagePage') },
  { path: 'notifications', ...lazyRoute(() => import('./notifications/notifications-page.tsx'), 'NotificationsPage') },
  { path: 'api-reference', ...lazyRoute(() => import('./frame/api-page.tsx'), 'ApiPage') },
  { path: 'settings', ...lazyRoute(() => import('./settings/settings-page.tsx'), 'SettingsPage') },
];

export function createRouter() {
  const routes: RouteObject[] = [
    {
      path: loginCheckPath,
      HydrateFallback: LoadingPage,
      ...lazyRoute(() => import('./servers/login-check/return-page.tsx'), 'LoginReturnPage'),
    },
    {
      path: '/',
      Component: Frame,
      ErrorBoundary: RouteFailure,
      HydrateFallback: LoadingPage,
      children: [
        { ErrorBoundary: RouteFailure, children: pages },
        { path: '*', ...lazyRoute(() => import('./frame/not-found-page.tsx'), 'NotFoundPage') },
      ],
    },
  ];
  return createBrowserRouter(routes, { basename: basePath || '/' });
}
