/* Networks: layers of published ones, for images and sequences that two processor cores can train. */
#include "net.h"

#include <stdio.h>
#include <string.h>

static tensor *basic_block(net *n, tensor *x, int channels, int stride, const char *name)
{
    tensor *short_cut = x;
    net_layer(n, "%s.conv1", name);
    tensor *y = net_norm_relu(n, net_conv(n, x, channels, 3, stride, 1));
    net_layer(n, "%s.conv2", name);
    y = net_norm(n, net_conv(n, y, channels, 3, 1, 1));
    if (stride > 1 || x->md.dims[1] != channels) {
        net_layer(n, "%s.downsample", name);
        short_cut = net_norm(n, net_conv(n, x, channels, 1, stride, 1));
    }
    net_layer(n, "%s.add", name);
    return net_relu(n, net_add(n, y, short_cut));
}

static tensor *bottleneck(net *n, tensor *x, int channels, int stride, const char *name)
{
    tensor *short_cut = x;
    net_layer(n, "%s.conv1", name);
    tensor *y = net_norm_relu(n, net_conv(n, x, channels, 1, 1, 1));
    net_layer(n, "%s.conv2", name);
    y = net_norm_relu(n, net_conv(n, y, channels, 3, stride, 1));
    net_layer(n, "%s.conv3", name);
    y = net_norm(n, net_conv(n, y, 4 * channels, 1, 1, 1));
    if (stride > 1 || x->md.dims[1] != 4 * channels) {
        net_layer(n, "%s.downsample", name);
        short_cut = net_norm(n, net_conv(n, x, 4 * channels, 1, stride, 1));
    }
    net_layer(n, "%s.add", name);
    return net_relu(n, net_add(n, y, short_cut));
}

typedef tensor *block(net *n, tensor *x, int channels, int stride, const char *name);

static tensor *classify(net *n, tensor *x)
{
    net_layer(n, "avgpool");
    x = net_pool(n, x, false, (int)x->md.dims[2], 1, 0);
    net_layer(n, "fc");
    return net_linear(n, net_flat(n, x), 1000);
}

static tensor *residual(net *n, block *make, const int *blocks, int batch, int size)
{
    tensor *x = net_image(n, batch, 3, size);
    net_layer(n, "conv1");
    x = net_norm_relu(n, net_conv(n, x, 64, 7, 2, 1));
    net_layer(n, "maxpool");
    x = net_pool(n, x, true, 3, 2, 1);
    for (int stage = 0; stage < 4; stage++)
        for (int b = 0; b < blocks[stage]; b++) {
            char name[32];
            snprintf(name, sizeof name, "layer%d.%d", stage + 1, b);
            x = make(n, x, 64 << stage, b == 0 && stage ? 2 : 1, name);
        }
    return classify(n, x);
}

static tensor *resnet18(net *n)
{
    return residual(n, basic_block, (int[]){2, 2, 2, 2}, 4, 64);
}

static tensor *resnet34(net *n)
{
    return residual(n, basic_block, (int[]){3, 4, 6, 3}, 2, 64);
}

static tensor *resnet50(net *n)
{
    return residual(n, bottleneck, (int[]){3, 4, 6, 3}, 2, 64);
}

static tensor *mobilenet(net *n)
{
    static const struct {
        int channels, stride;
    } BLOCKS[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                  {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    tensor *x = net_image(n, 4, 3, 96);
    net_layer(n, "conv1");
    x = net_norm_relu(n, net_conv(n, x, 32, 3, 2, 1));
    for (size_t i = 0; i < sizeof BLOCKS / sizeof *BLOCKS; i++) {
        net_layer(n, "block%zu.depthwise", i);
        int in = (int)x->md.dims[1];
        x = net_norm_relu(n, net_conv(n, x, in, 3, BLOCKS[i].stride, in));
        net_layer(n, "block%zu.pointwise", i);
        x = net_norm_relu(n, net_conv(n, x, BLOCKS[i].channels, 1, 1, 1));
    }
    return classify(n, x);
}

/* A stack of convolutions with bias and ReLU; 0 stands for a pooling. */
static tensor *stack(net *n, tensor *x, const int *channels)
{
    for (int i = 0; *channels >= 0; i++, channels++)
        if (*channels) {
            net_layer(n, "features.%d", i);
            x = net_conv_bias_relu(n, x, *channels, 3, 1);
        } else {
            net_layer(n, "features.%d", i);
            x = net_pool(n, x, true, 2, 2, 0);
        }
    net_layer(n, "classifier.0");
    x = net_relu(n, net_linear(n, net_flat(n, x), 1024));
    net_layer(n, "classifier.1");
    x = net_relu(n, net_linear(n, x, 1024));
    net_layer(n, "classifier.2");
    return net_linear(n, x, 1000);
}

static tensor *vgg11(net *n)
{
    return stack(n, net_image(n, 2, 3, 64), (int[]){64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0, -1});
}

static tensor *vgg16(net *n)
{
    return stack(n, net_image(n, 1, 3, 64),
                 (int[]){64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0, -1});
}

/* Many layers with little work each: the host is what limits it. */
static tensor *mlp(net *n)
{
    tensor *x = net_tokens(n, 32, 256);
    for (int i = 0; i < 24; i++) {
        net_layer(n, "layers.%d", i);
        x = net_relu(n, net_linear(n, x, 256));
    }
    net_layer(n, "output");
    return net_linear(n, x, 100);
}

static tensor *encoder(net *n, int blocks, int batch, int tokens, int features, int heads)
{
    tensor *x = net_tokens(n, batch * tokens, features);
    net_layer(n, "embedding");
    x = net_linear(n, x, features);
    for (int i = 0; i < blocks; i++) {
        net_layer(n, "encoder.%d.attention", i);
        tensor *q = net_linear(n, x, features), *k = net_linear(n, x, features), *v = net_linear(n, x, features);
        tensor *y = net_linear(n, net_attention(n, q, k, v, batch, heads), features);
        net_layer(n, "encoder.%d.norm1", i);
        x = net_layer_norm(n, net_add(n, x, y));
        net_layer(n, "encoder.%d.mlp", i);
        y = net_linear(n, net_gelu(n, net_linear(n, x, 4 * features)), features);
        net_layer(n, "encoder.%d.norm2", i);
        x = net_layer_norm(n, net_add(n, x, y));
    }
    net_layer(n, "head");
    return net_linear(n, x, 1000);
}

static tensor *bert(net *n)
{
    return encoder(n, 4, 2, 64, 256, 4);
}

static tensor *vit(net *n)
{
    return encoder(n, 6, 1, 50, 192, 3);
}

static tensor *gpt(net *n)
{
    return encoder(n, 3, 1, 128, 320, 5);
}

static tensor *lstm(net *n)
{
    tensor *x = net_tokens(n, 24 * 8, 256);
    net_layer(n, "embedding");
    x = net_linear(n, x, 256);
    for (int i = 0; i < 2; i++) {
        net_layer(n, "lstm.%d", i);
        x = net_lstm(n, x, 24, 256);
    }
    net_layer(n, "head");
    return net_linear(n, x, 1000);
}

/* As little as a test needs: an image and all sorts of layers. */
static tensor *tiny(net *n)
{
    tensor *x = net_image(n, 2, 3, 16);
    net_layer(n, "conv1");
    x = net_norm_relu(n, net_conv(n, x, 16, 3, 1, 1));
    x = basic_block(n, x, 16, 1, "block");
    net_layer(n, "features");
    x = net_conv_bias_relu(n, x, 16, 3, 2);
    net_layer(n, "fc");
    return net_linear(n, net_flat(n, x), 10);
}

static const struct {
    const char *name;
    tensor *(*build)(net *n);
} ZOO[] = {
    {"resnet18", resnet18}, {"resnet34", resnet34}, {"resnet50", resnet50}, {"mobilenet", mobilenet},
    {"vgg11", vgg11},       {"vgg16", vgg16},       {"mlp", mlp},           {"bert", bert},
    {"vit", vit},           {"lstm", lstm},         {"gpt", gpt},           {"tiny", tiny},
};

bool zoo_build(net *n, const char *name)
{
    for (size_t i = 0; i < sizeof ZOO / sizeof *ZOO; i++)
        if (!strcmp(ZOO[i].name, name)) {
            n->output = ZOO[i].build(n);
            return true;
        }
    return false;
}

void zoo_list(void)
{
    for (size_t i = 0; i < sizeof ZOO / sizeof *ZOO; i++)
        puts(ZOO[i].name);
}
