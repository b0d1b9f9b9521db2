/** Shows that receivers get notifications of restarts and failures, and that a slow or broken receiver delays nothing. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { untilMay, untilMayNot } from "../controller/access.ts";
import { AUTO, annotated, named, newShop } from "../controller/annotated.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, registerSecret, secretText } from "../controller/leak-detector.ts";
import { applyFile, deleteFile } from "../controller/manifests.ts";
import { installReloader, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { CONTROLLER } from "../controller/requests.ts";
import { createNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";
import { type Answer, startServer, type TestServer } from "../unit/vault/server.ts";

const FILE = join(import.meta.dirname, "..", "..", "deploy", "manifests", "optional", "notifications.yaml");
const SECRETS = "/api/v1/namespaces/inlay-system/secrets";
const mayRead = { verb: "get", resource: "secrets", name: "inlay-notifications", namespace: "inlay-system" };
const sources = [{ secret: { name: "bucket" } }];
const sent: Answer = (_, response) => response.end("ok");

describe("receivers of notifications", function () {
  this.timeout("3m");
  let api: Api;
  let controller: ControllerProcess;
  /**
   * `hook` gets everything as JSON, `chat` gets failures as texts of a template, and `silent` gets everything and never answers.
   */
  const receivers: Record<string, TestServer> = {};
  const received = (name: string, team: { namespace: string }): AnyObject[] =>
    (receivers[name]?.received ?? [])
      .map(({ body }) => JSON.parse(body))
      .filter((body) => JSON.stringify(body).includes(team.namespace));

  before(async () => {
    await installReloader();
    api = new Api(controlPlane());
    await applyFile(api, FILE);
    const urls: Record<string, string> = {};
    for (const name of ["hook", "chat", "silent"]) {
      const server = await startServer(name === "silent" ? () => {} : sent);
      receivers[name] = server;
      const path = registerSecret(secretText("path"));
      urls[name] = Buffer.from(new URL(path, server.url).href).toString("base64");
    }
    await api.create(SECRETS, { metadata: { name: "inlay-notifications" }, data: urls });
    await untilMay(CONTROLLER, mayRead);
    const to = (name: string) => ({
      name,
      type: "Webhook",
      url: { secret: { name: "inlay-notifications", key: name } },
      insecure: true,
    });
    const template =
      "{{event}} {{workload.kind}} {{workload.namespace}}/{{workload.name}} by {{binding.name}}: {{keys}}";
    const chat = { ...to("chat"), type: "Slack", events: ["RestartFailed"], template };
    const notifications = [to("hook"), chat, to("silent")];
    controller = await reloading({ namespaces: ["team-*"] }, { notifications });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await api.remove(`${SECRETS}/inlay-notifications`);
    await deleteFile(api, FILE);
    await untilMayNot(CONTROLLER, mayRead);
    await removeReloader();
    await Promise.all(Object.values(receivers).map((each) => each.stop()));
    assert.deepEqual(foundIn(controller.output), []);
  });

  const answerWith = (name: string, answer: Answer) => {
    const server = receivers[name];
    assert.ok(server);
    server.answer = answer;
  };

  it("get each restart of a binding once, in order, also after failed deliveries", async () => {
    const team = await createNamespace({ controller: false, rules: rolloutRules });
    const shop = new Workloads(team);
    const rotate = () => team.secret("bucket", { access: secretText("access") });
    await rotate();
    await shop.deploy({ core: { env: { bucket: ["access"] } } });
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"] } });
    await shop.rolledOut("rolls", 0);
    assert.deepEqual(received("hook", team), []);
    const answers: Answer[] = [
      (_, response) => response.writeHead(500).end(),
      (_, response) => response.writeHead(429, { "retry-after": "1" }).end(),
    ];
    answerWith("hook", (request, response) => (answers.shift() ?? sent)(request, response));
    await rotate();
    await shop.rolledOut("rolls", 1);
    await rotate();
    await shop.rolledOut("rolls", 2);
    await eventually(() => assert.equal(received("hook", team).length, 4));
    const [first, second, third, next] = received("hook", team);
    assert.deepEqual([second, third], [first, first]);
    const { time, message, text, ...fields } = first ?? {};
    const { namespace } = team;
    assert.match(message, new RegExp(`SecretBinding ${namespace}/rolls\\b.*\\bbucket/access\\b`));
    assert.equal(text, `Deployment ${namespace}/core ${message}`);
    assert.deepEqual(fields, {
      event: "Restarted",
      reason: "Restarted",
      workload: { apiVersion: "apps/v1", kind: "Deployment", namespace, name: "core" },
      binding: { namespace, name: "rolls" },
      keys: ["bucket/access"],
    });
    assert.ok(Date.parse(next?.["time"]) > Date.parse(time), `${next?.["time"]} after ${time}`);
    // The receiver for failures alone got nothing, and the silent receiver delayed nothing.
    assert.deepEqual(received("chat", team), []);
    assert.ok(received("silent", team).length > 0);
    await eventually(async () => {
      assert.equal(await controller.metric("inlay_notifications_total", 'receiver="hook",result="sent"'), 2);
      assert.equal(await controller.metric("inlay_notifications_total", 'receiver="silent",result="sent"'), 0);
    });
  });

  it("get one failure of a workload that does not roll out, in the form of their template", async () => {
    const team = await createNamespace({ controller: false, rules: rolloutRules });
    const shop = new Workloads(team);
    await team.secret("bucket", { access: secretText("access") });
    await shop.deploy({ core: { env: { bucket: ["access"] } } });
    const targets = [{ kind: "Deployment", name: "core" }];
    await team.bind("rolls", { sources, rollout: { steps: [{ name: "only", targets, timeout: "1s" }] } });
    await shop.rolledOut("rolls", 0);
    // From now on, no node accepts its pods.
    await team.api.merge(shop.path("core"), { spec: { paused: true } });
    await team.api.merge(shop.path("core"), { spec: { template: { spec: { nodeSelector: { nowhere: "true" } } } } });
    await team.secret("bucket", { access: secretText("access") });
    await eventually(async () => assert.ok((await shop.annotations("core"))["inlay.dev/rollout"]));
    await team.api.merge(shop.path("core"), { spec: { paused: false } });
    await shop.until("rolls", "RolloutFailed");
    const text = `RestartFailed Deployment ${team.namespace}/core by rolls: bucket/*`;
    await eventually(() => assert.deepEqual(received("chat", team), [{ text }]));
    await eventually(() => {
      const events = received("hook", team).map(({ event, reason }) => [event, reason]);
      assert.deepEqual(events, [
        ["Restarted", "Restarted"],
        ["RestartFailed", "RolloutFailed"],
      ]);
    });
    assert.match(received("hook", team)[1]?.["message"], /did not roll out/);
    // The next controller reads in status which failure was sent, and does not send it again.
    await controller.stop();
    const before = (receivers["hook"]?.received ?? []).length;
    await controller.start();
    await controller.idle();
    await team.api.merge(shop.path("core"), { spec: { template: { spec: { nodeSelector: null } } } });
    await shop.rolledOut("rolls", 1);
    assert.equal(receivers["hook"]?.received.length, before);
  });

  it("get restarts by Reloader's annotations, also after their URL has changed", async () => {
    const shop = await newShop();
    await shop.make(annotated("web", AUTO));
    await untilMade(shop.team, named("web"));
    const moved = await startServer(sent);
    receivers["moved"] = moved;
    const url = new URL(registerSecret(secretText("path")), moved.url).href;
    await api.merge(`${SECRETS}/inlay-notifications`, { data: { hook: Buffer.from(url).toString("base64") } });
    await shop.restartedBy(() => shop.rotate("one"), ["web"], named("web"));
    await eventually(() => assert.equal(received("moved", shop.team).length, 1));
    const [{ workload, binding } = {}] = received("moved", shop.team);
    assert.deepEqual([workload.name, binding.name], ["web", named("web")[0]]);
    const { items } = await api.get(shop.team.path("events.k8s.io/v1", "events"));
    assert.deepEqual(foundIn(JSON.stringify(items) + (await controller.page("/metrics"))), []);
  });
});
