package script_test

import (
	"context"
	"fmt"

	"skein/agent/model"
	"skein/agent/model/openai"
	"skein/agent/model/script"
)

// A model client talks to a script as it talks to a provider, over HTTP.
func ExampleListen() {
	ctx := context.Background()
	rules, err := script.Parse([]byte(`
- when: {agent: "0", turn: 1, user: "port of (\\w+)"}
  call: {grep: {pattern: "${1}.*port"}}
- say: I cannot help with that
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	srv, err := script.Listen(ctx, rules, "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	client, err := openai.New(openai.Options{BaseURL: srv.URL(), Model: "script", Scripted: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	talk := model.NewTranscript(client)
	if err := talk.Append(model.Message{Role: model.User, Text: "What is the port of api?"}); err != nil {
		fmt.Println(err)
		return
	}
	reply, err := client.Exchange(ctx, model.Request{
		Messages: talk.Messages(),
		Origin:   model.Origin{Agent: "0", Turn: 1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Finish, reply.Message.Calls[0].Name, reply.Message.Calls[0].Args)
	// Output: tool_calls grep {"pattern":"api.*port"}
}
